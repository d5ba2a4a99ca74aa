import { describe, expect, it } from 'vitest';
import { corpusBleu, formatScore, sentenceBleu, tokenizerFor } from 'torchformer';

describe('corpusBleu', () => {
  it('is 100 for the references themselves', () => {
    const texts = ['the cat is on the mat', 'it is there'];
    expect(corpusBleu(texts, texts).score).toBeCloseTo(100, 10);
  });

  it('is the geometric mean of the shares of n-grams that are in the reference', () => {
    // Of 4 words 3, of 3 pairs 2, of 2 triples 1, and half of the missing 4-gram.
    const { score, counts, totals, precisions } = corpusBleu(['a b c x'], ['a b c d']);
    expect(counts).toEqual([3, 2, 1, 0]);
    expect(totals).toEqual([4, 3, 2, 1]);
    expect(precisions).toEqual([75, (100 * 2) / 3, 50, 50]);
    expect(score).toBeCloseTo((75 * (200 / 3) * 50 * 50) ** (1 / 4), 10);
  });

  it('lowers the score of short translations by exp(1 - reference / translation)', () => {
    const { brevityPenalty, systemLength, referenceLength, score } = corpusBleu(
      ['a b c d'],
      ['a b c d e f g h'],
    );
    expect([systemLength, referenceLength]).toEqual([4, 8]);
    expect(brevityPenalty).toBeCloseTo(Math.exp(-1), 12);
    expect(score).toBeCloseTo(100 * Math.exp(-1), 10);
  });

  it('adds up the n-grams of all sentences, instead of taking a mean of scores', () => {
    const { counts, totals } = corpusBleu(['a b', 'c d e'], ['a b', 'c d x']);
    expect(counts).toEqual([4, 2, 0, 0]);
    expect(totals).toEqual([5, 3, 1, 0]);
  });

  it('takes the references of a sentence as a list, and the closest length of them', () => {
    const { counts, referenceLength, signature } = corpusBleu(
      ['a b c'],
      [['a b', 'x y c d', 'b c']],
    );
    expect(counts).toEqual([3, 2, 0, 0]);
    expect(referenceLength).toBe(2);
    expect(signature).toContain('nrefs:3|');
  });

  it('calls the number of references var if it is not the same for all', () => {
    expect(corpusBleu(['a', 'b'], ['a', ['b', 'c']]).signature).toContain('nrefs:var|');
  });

  it('is 0, not NaN, without a match and for empty translations', () => {
    expect(corpusBleu(['a'], ['b'])).toMatchObject({ score: 0, brevityPenalty: 1 });
    expect(corpusBleu([''], ['b'])).toMatchObject({ score: 0, brevityPenalty: 0, systemLength: 0 });
    expect(corpusBleu([''], [''])).toMatchObject({ score: 0, brevityPenalty: 1 });
  });

  it('takes a word for each Chinese character with zh only', () => {
    const [hypotheses, references] = [['他在看书。'], ['他在看报。']];
    expect(corpusBleu(hypotheses, references).totals).toEqual([1, 0, 0, 0]);
    const { counts, totals } = corpusBleu(hypotheses, references, { tokenize: 'zh' });
    expect(counts).toEqual([4, 2, 1, 0]);
    expect(totals).toEqual([5, 4, 3, 2]);
  });
});

describe('sentenceBleu', () => {
  it('leaves out the orders that a short sentence has not', () => {
    expect(sentenceBleu('yes', 'yes').score).toBeCloseTo(100, 10);
    expect(sentenceBleu('yes', 'yes', { effectiveOrder: false }).score).toBe(0);
    expect(sentenceBleu('yes', ['no', 'yes']).signature).toContain('nrefs:2|case:mixed|eff:yes|');
  });
});

describe('tokenizerFor', () => {
  it('is zh if most letters of the references are Chinese', () => {
    expect(tokenizerFor(['我在图书馆看书。', '我用iPhone。'])).toBe('zh');
    expect(tokenizerFor([['他说了。'], ['她说了。', '她说过。']])).toBe('zh');
  });

  it('is 13a for other languages, and for those that only use Chinese characters too', () => {
    expect(tokenizerFor(['The word 中国 means China.'])).toBe('13a');
    expect(tokenizerFor(['図書館で本を読む。'])).toBe('13a');
    expect(tokenizerFor(['', '12 + 3'])).toBe('13a');
  });
});

describe('formatScore', () => {
  it('prints a score as sacrebleu does, with the version of this package after its own', () => {
    const score = corpusBleu(['a b c x'], ['a b c d']);
    expect(formatScore(score)).toMatch(
      /^BLEU\|nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:2\.6\.0\|torchformer:[^ |]+ = 59\.46 75\.0\/66\.7\/50\.0\/50\.0 \(BP = 1\.000 ratio = 1\.000 hyp_len = 4 ref_len = 4\)$/,
    );
    expect(formatScore(score, 4)).toContain(' = 59.4604 ');
  });
});
