import { describe, expect, it } from 'vitest';
import { corpusTer, sentenceTer } from 'torchformer';

describe('corpusTer', () => {
  it('counts substitutions, deletions and insertions for 100 words of the references', () => {
    expect(corpusTer(['a b c d', 'a b c d', 'a b'], ['a b c x', 'a b c', 'a b c'])).toMatchObject({
      name: 'TER',
      edits: 3,
      referenceLength: 10,
      score: 30,
    });
  });

  it('counts the shift of some words as one edit', () => {
    expect(sentenceTer('c d a b', 'a b c d').edits).toBe(1);
    expect(sentenceTer('d c b a', 'a b c d').edits).toBe(3);
  });

  it('takes the closest reference, and the mean of their lengths', () => {
    expect(sentenceTer('a b', ['a b c d', 'a x'])).toMatchObject({ edits: 1, referenceLength: 3 });
  });

  it('ignores case unless it is asked not to', () => {
    expect(sentenceTer('A', 'a').score).toBe(0);
    expect(sentenceTer('A', 'a', { caseSensitive: true }).score).toBe(100);
  });

  it('has a value for empty texts', () => {
    expect(sentenceTer('', 'a b').score).toBe(100);
    expect(sentenceTer('a b', '').score).toBe(100);
    expect(sentenceTer('', '').score).toBe(0);
  });

  it('ends for long texts in which everything could move everywhere', () => {
    const words = Array.from({ length: 400 }, (_, index) => `w${index % 20}`);
    const { edits } = sentenceTer([...words].reverse().join(' '), words.join(' '));
    expect(edits).toBeGreaterThan(0);
    expect(edits).toBeLessThan(800);
  });
});
