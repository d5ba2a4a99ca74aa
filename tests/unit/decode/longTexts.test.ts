import { describe, expect, test } from 'vitest';
import { TextTooLongError, Tokenizer, trainBpe, Translator } from 'torchformer';
// Internal: the command translates with it what is too long.
import { splitText } from '../../../dist/decode/splitText.js';
import { tinyModel, tinyTask } from '../../support/tinyTranslation.js';

test('a text of more than 100,000 characters is refused before it is tokenized', async () => {
  const { tokenizer, specialIds } = await tinyTask();
  const model = tinyModel(tokenizer.vocabSize, { positions: 'none' }).eval();
  const translator = new Translator(model, { tokenizer, specialIds });
  const start = performance.now();
  const error: unknown = await translator
    .translate(['one', 'a'.repeat(20_000_000)])
    .catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(TextTooLongError);
  expect(error).toMatchObject({ index: 1, tokens: null });
  expect((error as Error).message).toBe(
    'Translator.translate: texts[1] has more than 100,000 characters; split the text',
  );
  expect(performance.now() - start).toBeLessThan(2000);
  translator.dispose();
});

test('a text of which nothing would be seen gives an empty output', async () => {
  const { tokenizer, specialIds } = await tinyTask();
  const translator = new Translator(tinyModel(tokenizer.vocabSize).eval(), {
    tokenizer,
    specialIds,
  });
  expect(await translator.translate([' \u200b', '\ufeff\u2060'])).toEqual(['', '']);
  translator.dispose();
});

describe('splitText', () => {
  test('cuts at sentences, else at white space, else between tokens, and loses nothing', async () => {
    const tokenizer = Tokenizer.fromJson(await trainBpe(['one two three'], { vocabSize: 270 }));
    const texts = [
      'One two. Three four! Five six? Seven "eight." Nine.',
      'one two three one two three one two three one two three',
      'onetwothreeonetwothreeonetwothreeonetwothree',
      '一二三。四五六！七八九？十',
      '🙂🙂🙂🙂🙂🙂🙂🙂🙂',
      `${'one '.repeat(300)}. two`,
    ];
    for (const text of texts) {
      for (const limit of [5, 8, 20]) {
        const parts = await splitText(text, tokenizer, limit);
        expect(parts.join('').replace(/\s/g, '')).toBe(text.replace(/\s/g, ''));
        for (const part of parts) {
          const { length } = await tokenizer.encode(part);
          expect(length).toBeGreaterThan(0);
          expect(length).toBeLessThanOrEqual(limit);
        }
      }
    }
    expect(await splitText('One two. Three four. Five', tokenizer, 20)).toEqual([
      'One two. Three four.',
      'Five',
    ]);
  });

  test('refuses a character with more tokens than a part may have', async () => {
    const tokenizer = Tokenizer.fromJson(await trainBpe(['one'], { vocabSize: 270 }));
    await expect(splitText('🙂🙂', tokenizer, 3)).rejects.toThrow('cannot be split');
  });
});
