import { describe, expect, test } from 'vitest';
import {
  describeReport,
  encodePairs,
  findSpecialIds,
  Tokenizer,
  trainBpe,
  trainCharacters,
  TranslationDataset,
  type TokenizerProgress,
} from 'torchformer';

/** A tokenizer of words on a model given as JSON. */
function tokenizerOf(model: object, preTokenizer: object | null = { type: 'Whitespace' }) {
  return Tokenizer.fromJson({
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: ['<pad>', '<bos>', '<eos>'].map((content, id) => ({
      ...{ id, content, single_word: false, lstrip: false, rstrip: false },
      ...{ normalized: false, special: true },
    })),
    normalizer: null,
    pre_tokenizer: preTokenizer,
    post_processor: null,
    decoder: null,
    model,
  });
}

const letters = { '<pad>': 0, '<bos>': 1, '<eos>': 2, a: 3, b: 4, ab: 5 };
const bpe = {
  ...{ type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null },
  ...{ end_of_word_suffix: null, fuse_unk: false, byte_fallback: false },
  ...{ vocab: letters, merges: [['a', 'b']] },
};
const specialIds = { pad: 0, bos: 1, eos: 2 };

async function encode(tokenizer: Tokenizer, texts: [string, string][]) {
  const pairs = texts.map(([src, tgt]) => ({ src, tgt }));
  return encodePairs(pairs, { tokenizer, specialIds });
}

describe('characters that the tokenizer does not know', () => {
  const texts: [string, string][] = [
    ['ab ab', 'b a'],
    ['ab x', 'a'],
    ['a', 'b\u00fc'],
    ['zz', 'a'],
  ];

  test('are counted where it leaves them out', async () => {
    const { pairs, report } = await encode(tokenizerOf(bpe), texts);
    expect(pairs.map(({ row }) => row)).toEqual([1, 2, 3]);
    expect(report).toMatchObject({ kept: 3, empty: 1, unknown: 2, unknownRows: [2, 3] });
    expect(describeReport(report)).toBe(
      'the pairs: 3 pairs kept of 4 rows; left out: 1 empty (row 4); ' +
        'kept: 2 with characters that the tokenizer does not know (rows 2, 3)',
    );
  });

  test('are counted where one token stands for all of them', async () => {
    const vocab = { ...letters, '<unk>': 6 };
    const { report } = await encode(tokenizerOf({ ...bpe, unk_token: '<unk>', vocab }), texts);
    expect(report).toMatchObject({ kept: 4, unknown: 3, unknownRows: [2, 3, 4] });
    const words = { type: 'WordLevel', vocab, unk_token: '<unk>' };
    const { report: ofWords } = await encode(tokenizerOf(words), texts);
    expect(ofWords.unknownRows).toEqual([2, 3, 4]);
  });

  test('are none for a tokenizer of bytes', async () => {
    for (const json of [await trainBpe(['ab']), await trainCharacters(['ab'])]) {
      const { report } = await encode(Tokenizer.fromJson(json), texts);
      expect(report).toMatchObject({ kept: 4, unknown: 0, unknownRows: [] });
    }
  });

  test('are counted for a tokenizer that lacks some bytes', async () => {
    const byteLevel = {
      type: 'ByteLevel',
      add_prefix_space: false,
      trim_offsets: true,
      use_regex: true,
    };
    const { report } = await encode(tokenizerOf(bpe, byteLevel), texts);
    // The space of the first row is a letter of its alphabet, too.
    expect(report.unknownRows).toEqual([1, 2, 3]);
  });

  test('are not white space and marks that a normalizer strips', async () => {
    const { report } = await encode(tokenizerOf(bpe), [['a \t\u00a0b', 'a\u0301']]);
    expect(report.unknown).toBe(0);
  });
});

test('a text of more than 100,000 characters is left out without being tokenized', async () => {
  const tokenizer = Tokenizer.fromJson(await trainCharacters(['ab']));
  const large = 'a'.repeat(20_000_000);
  const start = performance.now();
  const pairs = [
    { src: 'a', tgt: 'b' },
    { src: large, tgt: 'b' },
    { src: 'a', tgt: large },
    { src: 'a'.repeat(100_000), tgt: 'b' },
    { src: 'a'.repeat(100_001), tgt: 'b' },
  ];
  const options = { tokenizer, specialIds, maxLength: 1e9 };
  const { pairs: encoded, report } = await encodePairs(pairs, options);
  expect(encoded.map(({ row }) => row)).toEqual([1, 4]);
  expect(report).toMatchObject({ tooLong: 3, tooLongRows: [2, 3, 5] });
  expect(performance.now() - start).toBeLessThan(5000);
});

describe('progress', () => {
  test('of encoding is told after each group of pairs', async () => {
    const tokenizer = Tokenizer.fromJson(await trainCharacters(['ab']));
    const pairs = Array.from({ length: 1200 }, () => ({ src: 'a', tgt: 'b' }));
    const seen: [number, number][] = [];
    const dataset = await TranslationDataset.fromPairs(pairs, {
      tokenizer,
      specialIds: findSpecialIds(tokenizer),
      onProgress: (done, total) => seen.push([done, total]),
    });
    expect(dataset.length).toBe(1200);
    expect(seen).toEqual([
      [512, 1200],
      [1024, 1200],
      [1200, 1200],
    ]);
  });

  test('of a tokenizer is told for texts, then for merges', async () => {
    const word = (seed: number) => ((seed * 2_654_435_761) % 2 ** 32).toString(36);
    const texts = Array.from({ length: 20_000 }, (_, row) => `${word(row)} ${word(row * 7)}`);
    const seen: TokenizerProgress[] = [];
    await trainBpe(texts, { vocabSize: 2000, onProgress: (progress) => seen.push(progress) });
    const parts = seen.map(({ part }) => part);
    expect(new Set(parts)).toEqual(new Set(['texts', 'merges']));
    expect(parts.lastIndexOf('texts')).toBeLessThan(parts.indexOf('merges'));
    for (const { part, done, total } of seen) {
      expect(total).toBe(part === 'texts' ? 20_000 : 2000);
      expect(done).toBeLessThanOrEqual(total ?? 0);
    }
    seen.length = 0;
    const unknownNumber = (async function* () {
      yield* texts;
    })();
    await trainCharacters(unknownNumber, { onProgress: (progress) => seen.push(progress) });
    expect(seen.every(({ part, total }) => part === 'texts' && total === null)).toBe(true);
    expect(seen.length).toBeGreaterThan(0);
  });

  test('needs a function', async () => {
    const onProgress = 'yes' as unknown as () => void;
    await expect(trainBpe(['a'], { onProgress })).rejects.toThrow('trainBpe: onProgress must be');
    const tokenizer = Tokenizer.fromJson(await trainCharacters(['ab']));
    const pairs = [{ src: 'a', tgt: 'b' }];
    await expect(encodePairs(pairs, { tokenizer, specialIds, onProgress })).rejects.toThrow(
      'encodePairs: onProgress must be',
    );
  });
});
