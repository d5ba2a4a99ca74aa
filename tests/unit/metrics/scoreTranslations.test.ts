import { describe, expect, it } from 'vitest';
import { corpusBleu, corpusChrf, corpusTer, pairedBootstrap, scoreTranslations } from 'torchformer';

const hypotheses = ['A cat is on the mat.', 'It rains.', ''];
const references = [['A cat is on a mat.', 'There is a cat on the mat.'], 'It is raining.', 'Yes.'];

describe('scoreTranslations', () => {
  it('has the scores of all metrics', async () => {
    const scores = await scoreTranslations(hypotheses, references, { chrf: { wordOrder: 2 } });
    expect(scores).toEqual({
      bleu: corpusBleu(hypotheses, references),
      chrf: corpusChrf(hypotheses, references, { wordOrder: 2 }),
      ter: corpusTer(hypotheses, references),
    });
  });

  it('tokenizes Chinese references as Chinese by default', async () => {
    const { bleu } = await scoreTranslations(['他在看书。'], ['他在看报。']);
    expect(bleu.signature).toContain('|tok:zh|');
    const given = await scoreTranslations(['书'], ['报'], { bleu: { tokenize: 'char' } });
    expect(given.bleu.signature).toContain('|tok:char|');
  });

  it('lets the event loop go on, and stops by a signal', async () => {
    const many = Array.from({ length: 3000 }, (_, index) => `a b c d e f g ${index} h i j k l m`);
    const controller = new AbortController();
    // Fires only if the loop is given back before all is done.
    const timer = setTimeout(() => controller.abort(new Error('enough')), 1);
    await expect(
      scoreTranslations(many, [...many].reverse(), { signal: controller.signal }),
    ).rejects.toThrow('enough');
    clearTimeout(timer);
  });

  it('refuses to begin if the signal is aborted', async () => {
    const signal = AbortSignal.abort(new Error('before'));
    await expect(scoreTranslations(['a'], ['a'], { signal })).rejects.toThrow('before');
  });
});

describe('pairedBootstrap', () => {
  const right = Array.from({ length: 40 }, (_, index) => `this is the sentence number ${index} .`);
  const worse = right.map((text, index) =>
    index % 2 === 0 ? text : text.replace('is the', 'was a'),
  );

  it('finds a difference that is everywhere significant', async () => {
    const { bleu, ter } = await pairedBootstrap(worse, right, right, { samples: 100 });
    expect(bleu.system).toMatchObject({ margin: 0 });
    expect(bleu.system.score).toBeCloseTo(100, 8);
    expect(bleu.baseline.score).toBeLessThan(90);
    expect(bleu.baseline.margin).toBeGreaterThan(0);
    // No corpus that was drawn exceeds it: (0 + 1) / (100 + 1).
    expect(bleu.pValue).toBeCloseTo(1 / 101, 12);
    expect(ter.pValue).toBeCloseTo(1 / 101, 12);
  });

  it('does not call equal systems different', async () => {
    const { bleu, chrf, ter } = await pairedBootstrap(worse, worse, right, { samples: 50 });
    expect([bleu.pValue, chrf.pValue, ter.pValue]).toEqual([1, 1, 1]);
  });

  it('depends on its seed only', async () => {
    const of = (seed: number) => pairedBootstrap(worse, right, right, { samples: 20, seed });
    expect(await of(1)).toEqual(await of(1));
    expect((await of(1)).bleu.baseline.mean).not.toBe((await of(2)).bleu.baseline.mean);
    expect((await of(1)).bleu.signature).toContain('nrefs:1|bs:20|seed:1|case:mixed|');
  });
});
