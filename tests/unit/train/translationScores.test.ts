import { afterAll, describe, expect, it } from 'vitest';
import { corpusBleu, corpusChrf, corpusTer, translationScores, Translator } from 'torchformer';
import { fiftyPairs, tinyModel, tinyTask } from '../../support/tinyTranslation.js';

const { tokenizer, specialIds } = await tinyTask();
const model = tinyModel(tokenizer.vocabSize);
model.eval();
const translator = new Translator(model, { tokenizer, specialIds });
afterAll(() => translator.dispose());

const sources = fiftyPairs.map(({ src }) => src);
const references = fiftyPairs.map(({ tgt }) => tgt);
const maxLength = 6;

describe('translationScores', () => {
  it('has the translations of the translator and their scores', async () => {
    const found = await translationScores(translator, sources, references, { maxLength, beam: 2 });
    const translations = await translator.translate(sources, { maxLength, beam: 2 });
    expect(found).toMatchObject({
      translations,
      tooLong: [],
      bleu: corpusBleu(translations, references),
      chrf: corpusChrf(translations, references),
      ter: corpusTer(translations, references),
    });
    expect(found.seconds).toBeGreaterThan(0);
  });

  it('passes options on to the metrics', async () => {
    const { chrf, bleu } = await translationScores(translator, sources, references, {
      ...{ maxLength, chrf: { wordOrder: 2 }, bleu: { tokenize: 'char' } },
    });
    expect(chrf.name).toBe('chrF2++');
    expect(bleu.signature).toContain('tok:char');
  });

  it('counts a source that is too long as an empty translation, or throws on request', async () => {
    const long = ['twenty', 'forty two '.repeat(9)];
    const { translations, tooLong } = await translationScores(translator, long, ['20', '42'], {
      maxLength,
    });
    expect(tooLong).toEqual([1]);
    expect(translations[1]).toBe('');
    await expect(
      translationScores(translator, long, ['20', '42'], { maxLength, onTooLong: 'error' }),
    ).rejects.toThrow('translationScores: sources[1]');
  });

  it('tells how far it is', async () => {
    const seen: number[] = [];
    await translationScores(translator, sources, references, {
      maxLength,
      batchSize: 8,
      onProgress: (done, total) => seen.push(done, total),
    });
    expect(seen.slice(0, 2)).toEqual([8, 50]);
    expect(seen.slice(-2)).toEqual([50, 50]);
  });

  it('stops by a signal while it translates', async () => {
    const controller = new AbortController();
    const running = translationScores(translator, sources, references, {
      maxLength,
      batchSize: 4,
      signal: controller.signal,
      onProgress: () => controller.abort(new Error('enough')),
    });
    await expect(running).rejects.toThrow('enough');
  });

  it('checks all arguments before it translates', async () => {
    const none = { translateTextLines: () => expect.unreachable() };
    await expect(translationScores(none as never, ['a'], ['b'])).rejects.toThrow(
      'translator must be a Translator',
    );
    await expect(translationScores(translator, ['a', 'b'], ['c'])).rejects.toThrow(
      'there must be a reference for each source, got 2 sources and 1 reference',
    );
    await expect(translationScores(translator, [], [])).rejects.toThrow('references is empty');
    await expect(
      translationScores(translator, ['a'], ['b'], { bleu: { tokenize: 'ja' as never } }),
    ).rejects.toThrow('translationScores bleu: tokenize');
    await expect(translationScores(translator, ['a'], ['b'], { best: 2 } as never)).rejects.toThrow(
      'unknown option "best"',
    );
    await expect(translationScores(translator, ['a'], ['b'], { beam: 0 })).rejects.toThrow('beam');
  });
});
