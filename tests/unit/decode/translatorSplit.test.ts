/** Translation by sentences: `split`. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TextTooLongError, Translator } from 'torchformer';
import { tinyModel, tinyTask } from '../../support/tinyTranslation.js';

/** Of 32 positions, one token a character. */
let translator: Translator;
beforeAll(async () => {
  const { tokenizer, specialIds } = await tinyTask();
  const model = tinyModel(tokenizer.vocabSize).eval();
  translator = new Translator(model, { tokenizer, specialIds });
});
afterAll(() => translator.dispose());

const maxLength = 6;

test('each sentence is translated alone, and the layout of the text is kept', async () => {
  const [twenty, thirty, forty] = await translator.translate(
    ['twenty one.', 'Thirty two.', 'forty'],
    { maxLength },
  );
  const text = '\n  twenty one. Thirty two.\r\n\r\n\tforty \n';
  expect(await translator.translate(text, { maxLength, split: true })).toBe(
    `\n  ${twenty} ${thirty}\r\n\r\n\t${forty} \n`,
  );
});

test('a text without anything to translate stays as it is', async () => {
  expect(await translator.translate(['', ' \n\t'], { split: true })).toEqual(['', ' \n\t']);
});

test('a sentence that is too long is cut at white space, and nothing of it is lost', async () => {
  const text = 'twenty one thirty two forty three fifty four';
  const parts = await translator.translate(['twenty one thirty two forty', 'three fifty four'], {
    maxLength,
  });
  expect(await translator.translate(text, { maxLength, split: true })).toBe(parts.join(' '));
  const [{ sentences } = { sentences: null }] = await translator.translateDetailed([text], {
    maxLength,
    split: true,
  });
  expect(sentences?.map(({ source }) => source).join(' ')).toBe(text);
});

test('a line of 10,000 words is translated in parts', async () => {
  const text = 'twenty one '.repeat(5_000).trim();
  const options = { maxLength: 2, split: true };
  const [found] = await translator.translateDetailed([text], options);
  const sources = found?.sentences?.map(({ source }) => source) ?? [];
  expect(sources.join(' ')).toBe(text);
  const outputs = await translator.translate(sources, { maxLength: 2 });
  expect(await translator.translate(text, options)).toBe(outputs.join(' '));
});

test('without split, a text that is too long is an error with both lengths', async () => {
  const failure: unknown = await translator
    .translate(['forty', 'twenty one. thirty two. forty three.'])
    .catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(TextTooLongError);
  expect(failure).toMatchObject({ index: 1, tokens: 38, limit: 32 });
});

test('a sentence of more than 100,000 characters is refused even with split', async () => {
  const text = `forty. ${'x'.repeat(100_001)}`;
  await expect(translator.translate([text], { split: true })).rejects.toMatchObject({
    name: 'TextTooLongError',
    index: 0,
    tokens: null,
  });
});

describe('translateDetailed', () => {
  test('gives each sentence with its own outputs, and joins the best of each', async () => {
    const text = 'twenty one.\nForty';
    const options = { maxLength, beam: 3, nBest: 2, attention: true };
    const [joined] = await translator.translateDetailed([text], { ...options, split: true });
    const alone = await translator.translateDetailed(['twenty one.', 'Forty'], options);
    expect(joined?.sentences?.map(({ source, hypotheses }) => ({ source, hypotheses }))).toEqual([
      { source: 'twenty one.', hypotheses: alone[0]?.hypotheses },
      { source: 'Forty', hypotheses: alone[1]?.hypotheses },
    ]);
    const [first, second] = joined?.hypotheses ?? [];
    const texts = (place: number) => alone.map(({ hypotheses }) => hypotheses[place]?.text);
    expect(first?.text).toBe(texts(0).join('\n'));
    expect(second?.text).toBe(texts(1).join('\n'));
    expect(joined?.text).toBe(first?.text);
    expect(first?.score).toBe(
      (alone[0]?.hypotheses[0]?.score ?? NaN) + (alone[1]?.hypotheses[0]?.score ?? NaN),
    );
    expect(first?.tokens).toEqual(alone.flatMap(({ hypotheses }) => hypotheses[0]?.tokens));
    expect(first?.attention).toBeNull();
    expect(joined?.sourceTokens).toEqual(alone.flatMap(({ sourceTokens }) => sourceTokens));
  });

  test('without split has no sentences', async () => {
    const [found] = await translator.translateDetailed(['forty'], { maxLength });
    expect(found?.sentences).toBeNull();
  });
});

test.each<[unknown, RegExp]>([
  ['de', /translate: split must be a boolean or \{ locale \}, got/],
  [{ language: 'de' }, /translate split: unknown option .*language.*locale/s],
  [
    { locale: 'not a tag' },
    /translate split: locale must be a BCP 47 tag .*got the string "not a tag"/,
  ],
  [{ locale: 7 }, /translate split: locale must be a string, got 7/],
])('split: %j is refused', async (split, message) => {
  await expect(translator.translate(['forty'], { split: split as boolean })).rejects.toThrow(
    message,
  );
});
