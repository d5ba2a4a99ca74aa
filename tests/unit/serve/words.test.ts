/** Tokens of a model, grouped into the words that the page shows. */
import { Tokenizer, trainBpe, trainCharacters } from 'torchformer';
import { describe, expect, it } from 'vitest';
import { groupByWord, sourceWords, targetWords } from '../../../dist/serve/words.js';

describe('groupByWord', () => {
  it('gives each token to the word in which it begins', () => {
    //              0123456789
    const text = 'the house.';
    expect(groupByWord(text, [0, 4, 6, 9])).toEqual([
      { text: 'the', tokens: [0] },
      { text: 'house', tokens: [1, 2] },
      { text: '.', tokens: [3] },
    ]);
  });

  it('joins words that are one token', () => {
    expect(groupByWord('New York is', [0, 9])).toEqual([
      { text: 'New York', tokens: [0] },
      { text: 'is', tokens: [1] },
    ]);
  });

  it('knows words of languages without spaces', () => {
    expect(groupByWord('你好世界', [0, 1, 2, 3]).map(({ text }) => text)).toEqual(['你好', '世界']);
  });

  it('leaves out tokens that begin nowhere, and has no words for no text', () => {
    expect(groupByWord('a', [0, -1])).toEqual([{ text: 'a', tokens: [0] }]);
    expect(groupByWord('', [])).toEqual([]);
  });
});

describe('the words of a text and of an output', () => {
  const text = 'grüne Häuser 你好.';
  const words = ['grüne', 'Häuser', '你好', '.'];

  it.each([
    // No merges: every byte is a token, and most characters have several.
    ['bytes', () => trainBpe(['a'], { vocabSize: 260 })],
    ['byte-level BPE', () => trainBpe([text, 'grüne Häuser'], { vocabSize: 290 })],
    ['characters', () => trainCharacters([text])],
  ])('are the same with a tokenizer of %s', async (_, train) => {
    const tokenizer = Tokenizer.fromJson(await train());
    const ids = await tokenizer.encode(text);
    const tokens = ids.map((id) => tokenizer.tokenOf(id) as string);
    const source = await sourceWords(text, tokenizer);
    expect(source.map((word) => word.text)).toEqual(words);
    expect(await targetWords(text, tokens, tokenizer)).toEqual(source);
    // Tokens that are white space alone belong to the word after them.
    expect(source.flatMap((word) => word.tokens)).toEqual(ids.map((_id, index) => index));
  });

  it('are the tokens themselves if they are unknown to the tokenizer', async () => {
    const tokenizer = Tokenizer.fromJson(await trainCharacters(['ab']));
    expect(await targetWords('xy', ['x', 'y'], tokenizer)).toEqual([
      { text: 'x', tokens: [0] },
      { text: 'y', tokens: [1] },
    ]);
  });
});
