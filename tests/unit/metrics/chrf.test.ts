import { describe, expect, it } from 'vitest';
import { corpusChrf, sentenceChrf } from 'torchformer';

describe('corpusChrf', () => {
  it('weighs recall twice as much as precision', () => {
    // 2 of 2 characters are right, and 2 of 4 are found.
    const { score, name } = corpusChrf(['ab'], ['abcd'], { charOrder: 1 });
    expect(score).toBeCloseTo((100 * 5 * 1 * 0.5) / (4 * 1 + 0.5), 10);
    expect(name).toBe('chrF2');
  });

  it('ignores white space unless it is asked for', () => {
    expect(corpusChrf(['a b'], ['ab']).score).toBeCloseTo(100, 10);
    expect(corpusChrf(['a b'], ['ab'], { whitespace: true }).score).toBeLessThan(100);
  });

  it('takes a character outside the basic plane for one', () => {
    expect(corpusChrf(['😀'], ['😁'], { charOrder: 1 }).score).toBe(0);
  });

  it('counts words too as chrF++, without the punctuation at their ends', () => {
    const { name, score } = corpusChrf(['(hi'], ['( hi'], { wordOrder: 2 });
    expect(name).toBe('chrF2++');
    expect(score).toBeCloseTo(100, 10);
  });

  it('takes the reference with the best score', () => {
    expect(sentenceChrf('abc', ['xyz', 'abc']).score).toBeCloseTo(100, 10);
  });

  it('is 0, not NaN, for empty texts', () => {
    expect(corpusChrf([''], ['a']).score).toBe(0);
    expect(corpusChrf(['a'], ['']).score).toBe(0);
    expect(corpusChrf([''], ['']).score).toBe(0);
  });
});
