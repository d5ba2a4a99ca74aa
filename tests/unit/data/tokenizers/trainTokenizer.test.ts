import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { findSpecialIds, Tokenizer, trainBpe, trainCharacters } from 'torchformer';

interface TrainingCase {
  name: string;
  texts: string[];
  vocabSize: number;
  minFrequency: number;
  specialTokens: string[];
  merges: [string, string][];
  size: number;
  probes: string[];
  ids: number[][];
}

/** What Hugging Face's BpeTrainer makes of the same texts in Python. */
const { training } = JSON.parse(
  readFileSync(new URL('../fixtures/tokenizers.json', import.meta.url), 'utf8'),
) as { training: TrainingCase[] };

function mergesOf(json: string): unknown {
  return (JSON.parse(json) as { model: { merges: unknown } }).model.merges;
}

const oddTexts = [
  'plain words, and numbers 123,456.78',
  '中文也可以，没有空格。',
  '  leading, trailing  and   inner spaces   ',
  'line\nends\r\nof\rall\tkinds\u2028\u0085',
  '😀👩‍👩‍👧 𠮷 \u{10ffff}',
  'a\0b\u0001\u007f\u00a0\ufeff',
  'ﬁ ligature, e\u0301 combining, İ, ß',
  '<pad >< bos>',
  '',
];

describe.each(training)('trainBpe as Python: $name', (reference) => {
  const { texts, vocabSize, minFrequency, specialTokens } = reference;
  const train = () => trainBpe(texts, { vocabSize, minFrequency, specialTokens });

  test('the same merges and the same ids', async () => {
    const json = await train();
    expect(mergesOf(json)).toEqual(reference.merges);
    const tokenizer = Tokenizer.fromJson(json);
    expect(tokenizer.vocabSize).toBe(reference.size);
    expect(await tokenizer.encodeBatch(reference.probes)).toEqual(reference.ids);
  });

  test('every text comes back from its ids', async () => {
    const tokenizer = Tokenizer.fromJson(await train());
    const probes = [...reference.probes, ...oddTexts];
    expect(
      await tokenizer.decodeBatch(await tokenizer.encodeBatch(probes), {
        skipSpecialTokens: false,
      }),
    ).toEqual(probes);
  });
});

describe('trainBpe', () => {
  const texts = ['low lower lowest', 'new newer newest', '低 更低 最低'];

  test('puts special tokens first, under names that are found', async () => {
    const tokenizer = Tokenizer.fromJson(await trainBpe(texts));
    expect(findSpecialIds(tokenizer)).toMatchObject({ pad: 0, bos: 1, eos: 2 });
  });

  test('does not hang on the order of the texts', async () => {
    expect(await trainBpe([...texts].reverse())).toBe(await trainBpe(texts));
    const sets = [['bbbaaaddddcccc'], ['aaabbbccccdddd']];
    const merges = [];
    for (const set of sets) {
      const json = await trainBpe(set, { vocabSize: 263, minFrequency: 1 });
      merges.push(mergesOf(json));
    }
    expect(merges[0]).toHaveLength(4);
    expect(merges[0]).toEqual(merges[1]);
  });

  test('takes texts from an asynchronous source', async () => {
    async function* source() {
      for (const text of texts) yield await Promise.resolve(text);
    }
    expect(await trainBpe(source())).toBe(await trainBpe(texts));
  });

  test('stops early when no pair is frequent enough', async () => {
    const size = async (options: object) =>
      Tokenizer.fromJson(await trainBpe(['ab ab cd'], options)).vocabSize;
    // Only "ab" occurs twice.
    expect(await size({})).toBe(256 + 3 + 1);
    expect(await size({ minFrequency: 3 })).toBe(256 + 3);
    expect(await size({ minFrequency: 1, vocabSize: 261 })).toBe(261);
  });

  test('lets the event loop run while it works', async () => {
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const words = Array.from({ length: 30_000 }, (_, index) => `${index * 7919} ${index ** 2}`);
    await trainBpe(words, { vocabSize: 2000 });
    clearInterval(timer);
    expect(turns).toBeGreaterThan(3);
  });

  test('is stopped by a signal', async () => {
    const options = { signal: AbortSignal.abort() };
    await expect(trainBpe(texts, options)).rejects.toMatchObject({ name: 'AbortError' });
  });

  test.each<[string, object, RegExp]>([
    ['too small a vocabulary', { vocabSize: 258 }, /at least 259 .*got 258/],
    ['a frequency of 0', { minFrequency: 0 }, /minFrequency must be an integer at least 1/],
    ['a special token twice', { specialTokens: ['<a>', '<a>'] }, /has the string "<a>" twice/],
    ['an empty special token', { specialTokens: [''] }, /specialTokens\[0\]/],
    ['an unknown option', { size: 300 }, /unknown option "size".*vocabSize/],
  ])('%s: refused', async (_, options, message) => {
    await expect(trainBpe(texts, options)).rejects.toThrow(message);
  });

  test('refuses what is no text, with its index', async () => {
    await expect(trainBpe(['a', 5 as never])).rejects.toThrow(/text 1 must be a string, got 5/);
  });
});

describe('trainCharacters', () => {
  const texts = ['hello 世界', 'held 世上', '😀 hello'];

  test('makes one token of each character of the texts', async () => {
    const tokenizer = Tokenizer.fromJson(await trainCharacters(texts));
    const characters = new Set(texts.join(''));
    expect(tokenizer.vocabSize).toBe(3 + 256 + characters.size);
    for (const text of texts) {
      expect((await tokenizer.encodeWithOffsets(text)).tokens).toEqual([...text]);
    }
    expect(findSpecialIds(tokenizer)).toMatchObject({ pad: 0, bos: 1, eos: 2 });
  });

  test('spells other characters in bytes, so that every text comes back', async () => {
    const tokenizer = Tokenizer.fromJson(await trainCharacters(texts));
    const probes = [...texts, ...oddTexts];
    const ids = await tokenizer.encodeBatch(probes);
    expect(await tokenizer.decodeBatch(ids, { skipSpecialTokens: false })).toEqual(probes);
    expect((await tokenizer.encodeWithOffsets('é')).tokens).toEqual(['<0xC3>', '<0xA9>']);
  });

  test('keeps the most frequent characters when there is room for few', async () => {
    const tokenizer = Tokenizer.fromJson(await trainCharacters(['aaabbc'], { vocabSize: 261 }));
    expect(['a', 'b', 'c'].map((letter) => tokenizer.idOf(letter))).toEqual([259, 260, undefined]);
  });

  test('takes a lone surrogate for U+FFFD', async () => {
    const tokenizer = Tokenizer.fromJson(await trainCharacters(['\ud800']));
    expect(tokenizer.idOf('\ufffd')).toBe(259);
    expect(await tokenizer.encode('\udfff')).toEqual([259]);
  });

  test('refuses a vocabulary without room for the bytes', async () => {
    await expect(trainCharacters(texts, { vocabSize: 200 })).rejects.toThrow(/at least 259/);
  });
});
