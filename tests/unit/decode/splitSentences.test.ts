import { describe, expect, test } from 'vitest';
// Internal: `Translator.translate(…, { split: true })` uses it.
import {
  joinPieces,
  layoutOfParts,
  sentenceSplitter,
} from '../../../dist/decode/splitSentences.js';

const split = sentenceSplitter();

/** Separators and pieces, one after the other. */
function whole({ pieces, separators }: ReturnType<typeof split>): string {
  return separators.map((separator, index) => separator + (pieces[index] ?? '')).join('');
}

describe('a text is split', () => {
  test.each<[string, string, string[], string[]]>([
    ['one sentence', 'One.', ['One.'], ['', '']],
    ['two sentences', 'One. Two!', ['One.', 'Two!'], ['', ' ', '']],
    ['lines', 'One\nTwo\r\nThree', ['One', 'Two', 'Three'], ['', '\n', '\r\n', '']],
    ['blank lines', 'A.\n\n \t\nB.\n', ['A.', 'B.'], ['', '\n\n \t\n', '\n']],
    ['an indent', '  - One.  Two.\t', ['- One.', 'Two.'], ['  ', '  ', '\t']],
    ['Chinese', '你好。再见！', ['你好。', '再见！'], ['', '', '']],
    ['quotes', 'He said "No." She left.', ['He said "No."', 'She left.'], ['', ' ', '']],
    ['numbers', 'It is 3.5 m. Long.', ['It is 3.5 m.', 'Long.'], ['', ' ', '']],
    ['titles and initials', 'Dr. J. Smith came.', ['Dr. J. Smith came.'], ['', '']],
    ['a lone surrogate', '\ud800 a. B', ['\ud800 a.', 'B'], ['', ' ', '']],
    ['control characters', 'A\u0007b. \u0000C', ['A\u0007b.', '\u0000C'], ['', ' ', '']],
    ['white space alone', ' \n\u200b\n', [], [' \n\u200b\n']],
    ['nothing', '', [], ['']],
  ])('%s', (_name, text, pieces, separators) => {
    expect(split(text)).toEqual({ pieces, separators });
  });

  test('and is whole again with its separators, of any length', () => {
    const parts = [
      'One two. ',
      '三四。',
      'No. 5 is it? ',
      '\n\n',
      ' \t',
      'Well… ',
      '"Yes!" ',
      '7 8 ',
    ];
    for (let length = 1; length < 400; length += 37) {
      const text = Array.from(
        { length },
        (_, index) => parts[(index * index * 7 + length) % parts.length],
      ).join('');
      expect(whole(split(text))).toBe(text);
    }
  });

  test('in the same places whether it is seen as a whole or in parts of 1,000 characters', () => {
    const sentence = 'Some words are here, and no. 7 is one of them. ';
    const { pieces } = split(sentence.repeat(100));
    expect(new Set(pieces)).toEqual(new Set([sentence.trim()]));
    expect(pieces).toHaveLength(100);
  });

  test('a sentence of 10,000 words is one piece', () => {
    const long = 'word '.repeat(10_000).trim();
    expect(split(`${long}. End.`).pieces).toEqual([`${long}.`, 'End.']);
  });
});

describe('outputs are joined', () => {
  test('with the separators of the text', () => {
    expect(joinPieces(['\n', '\n\n  ', '\t'], ['Eins.', 'Zwei.'])).toBe('\nEins.\n\n  Zwei.\t');
  });

  test('with a space where the text has none and the output needs one', () => {
    expect(joinPieces(['', '', ''], ['Hello.', 'Goodbye!'])).toBe('Hello. Goodbye!');
    expect(joinPieces(['', '', ''], ['你好。', '再见！'])).toBe('你好。再见！');
    expect(joinPieces(['', '', ''], ['', 'Goodbye!'])).toBe('Goodbye!');
  });

  test('of parts that were cut, with what was between them', () => {
    expect(layoutOfParts(' one two  three', ['one two', 'three'])).toEqual({
      pieces: ['one two', 'three'],
      separators: [' ', '  ', ''],
    });
    expect(layoutOfParts('aaaa', ['aa', 'aa']).separators).toEqual(['', '', '']);
  });
});
