/** Tokens in the report are shown as text. */
import { Tokenizer, trainBpe } from 'torchformer';
import { expect, test } from 'vitest';
// Internal: how report.html shows tokens.
import { readableTokens } from '../../../../dist/train/report/readableTokens.js';

test('those of a byte-level vocabulary are the text that they stand for', () => {
  expect(readableTokens(['<bos>', 'fÃ¼r', 'ĠfÃ¼nf', 'Ġ', '<eos>'])).toEqual([
    '<bos>',
    'für',
    'fünf',
    '␣',
    '<eos>',
  ]);
});

test('those of a trained tokenizer make up the text', async () => {
  const text = 'für 猫 und 😀, «Ωm» über\tnull';
  const tokenizer = Tokenizer.fromJson(await trainBpe([text], { vocabSize: 400, minFrequency: 1 }));
  const ids = await tokenizer.encode(text);
  const tokens = ids.map((id) => tokenizer.tokenOf(id) as string);
  expect(tokens.join('')).toContain('Ã¼');
  expect(readableTokens(tokens).join('').replaceAll('␣', '')).toBe(text.replaceAll(/\s/g, ''));
});

test('a part of a character is shown as such', () => {
  expect(readableTokens(['Ġa', 'Ã'])).toEqual(['a', '\ufffd']);
});

test('those of SentencePiece lose the mark of a word', () => {
  expect(readableTokens(['▁für', 'ung', '▁'])).toEqual(['für', 'ung', '␣']);
});
