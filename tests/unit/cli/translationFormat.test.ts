import { describe, expect, test } from 'vitest';
import type { Translation } from 'torchformer';
// Internal: the command `translate` prints with it.
import { alignmentOf, formatted } from '../../../dist/cli/translationFormat.js';

/** "a b" → "x y", whose x attends to b and y to a; bos and eos around the source. */
const sentence = {
  source: 'a b',
  text: 'x y',
  sourceTokens: ['<s>', 'a', 'b', '</s>'],
  hypotheses: [
    {
      text: 'x y',
      score: -1.5,
      ended: true,
      tokens: [
        { token: 'x', score: -1 },
        { token: 'y', score: -0.25 },
      ],
      endScore: -0.25,
      attention: [
        [0.5, 0.1, 0.4, 0],
        [0, 0.3, 0.2, 0.5],
      ],
    },
    { text: 'z', score: -2, ended: true, tokens: [], endScore: 0, attention: [] },
  ],
};
const output: Translation = { ...sentence, sentences: null };
const line = { number: 3, text: 'a b', output, action: null };

describe('an alignment', () => {
  test('pairs each token with the one it attends to most, without bos and eos', () => {
    expect(alignmentOf(output, 0)).toEqual([
      [1, 0],
      [0, 1],
    ]);
  });

  test('of several sentences counts on', () => {
    const twice = { ...output, sentences: [sentence, sentence] };
    expect(alignmentOf(twice, 0)).toEqual([
      [1, 0],
      [0, 1],
      [3, 2],
      [2, 3],
    ]);
  });

  test('of an empty text has no pairs', () => {
    expect(alignmentOf({ text: '', sourceTokens: [], hypotheses: [], sentences: null }, 0)).toEqual(
      [],
    );
  });
});

describe('a line', () => {
  test('has the fields that were asked for, in one order', () => {
    expect(formatted(line, { nBest: 1, scores: true })).toBe('x y ||| -1.5000\n');
    expect(formatted(line, { nBest: 1, alignments: true })).toBe('x y ||| 1-0 0-1\n');
    expect(formatted(line, { nBest: 2, alignments: true })).toBe(
      '2 ||| x y ||| -1.5000 ||| 1-0 0-1\n2 ||| z ||| -2.0000 ||| \n',
    );
  });

  test('stays one line if the output has line ends', () => {
    const broken = { ...output, hypotheses: [{ ...sentence.hypotheses[0], text: 'x\r\ny' }] };
    const found = formatted({ ...line, output: broken as Translation }, { nBest: 1, scores: true });
    expect(found).toBe('x y ||| -1.5000\n');
  });

  test('as JSON is an object, with tokens and alignment if asked for', () => {
    expect(JSON.parse(formatted(line, { nBest: 2, json: true }))).toEqual({
      line: 3,
      text: 'x y',
      hypotheses: [
        { text: 'x y', score: -1.5, ended: true },
        { text: 'z', score: -2, ended: true },
      ],
    });
    const flags = { nBest: 2, json: true, alignments: true };
    expect(JSON.parse(formatted(line, flags))).toMatchObject({
      sourceTokens: ['a', 'b'],
      hypotheses: [
        {
          tokens: sentence.hypotheses[0]?.tokens,
          alignment: [
            [1, 0],
            [0, 1],
          ],
        },
        { alignment: [] },
      ],
    });
  });
});
