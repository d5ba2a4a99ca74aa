import { readFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  describeSpecialIds,
  findSpecialIds,
  Tokenizer,
  TorchError,
  type SpecialIdOptions,
} from 'torchformer';

interface EncodingCase {
  name: string;
  json: string;
  encodings: {
    text: string;
    ids: number[];
    tokens: string[];
    codePointOffsets: [number, number][];
    decoded: string;
  }[];
}

/** What Hugging Face's Python library makes of the same vocabularies and texts. */
const { encoding: encodingCases } = JSON.parse(
  readFileSync(new URL('../fixtures/tokenizers.json', import.meta.url), 'utf8'),
) as { encoding: EncodingCase[] };

type Json = Record<string, unknown>;

/** A tokenizer.json of a BPE model, with other parts by name. */
function bpe(vocab: Json, merges: unknown[], model: Json = {}, rest: Json = {}): Json {
  return {
    version: '1.0',
    added_tokens: [],
    ...rest,
    model: { type: 'BPE', vocab, merges, ...model },
  };
}

function added(id: number, content: string): Json {
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false };
  return { id, content, special: true, ...flags };
}

/** A tokenizer of the letters a to e and these special tokens. */
function withSpecialTokens(...tokens: string[]): Tokenizer {
  const vocab = { a: 0, b: 1, c: 2, d: 3, e: 4 };
  const rest = { added_tokens: tokens.map((token, index) => added(5 + index, token)) };
  return Tokenizer.fromJson(bpe(vocab, [], {}, rest));
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'torchformer-tokenizer-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(encodingCases)('as in Python: $name', ({ json, encodings }) => {
  const tokenizer = Tokenizer.fromJson(json);
  const texts = encodings.map(({ text }) => text);

  test('ids, one by one and in a batch', async () => {
    const expected = encodings.map(({ ids }) => ids);
    expect(await Promise.all(texts.map((text) => tokenizer.encode(text)))).toEqual(expected);
    expect(await tokenizer.encodeBatch(texts)).toEqual(expected);
  });

  test('text from ids', async () => {
    const ids = encodings.map((encoding) => encoding.ids);
    const expected = encodings.map(({ decoded }) => decoded);
    const options = { skipSpecialTokens: false };
    expect(await tokenizer.decodeBatch(ids, options)).toEqual(expected);
    expect(await Promise.all(ids.map((list) => tokenizer.decode(list, options)))).toEqual(expected);
  });

  test('tokens, with offsets in UTF-16 units', async () => {
    for (const { text, tokens, codePointOffsets } of encodings) {
      const encoding = await tokenizer.encodeWithOffsets(text);
      expect(encoding.tokens).toEqual(tokens);
      const characters = [...text];
      const pieces = codePointOffsets.map(([start, end]) => characters.slice(start, end).join(''));
      expect(encoding.offsets.map(([start, end]) => text.slice(start, end))).toEqual(pieces);
    }
  });
});

const bytesOnly = (): Tokenizer => {
  const { json } = encodingCases.find(({ name }) => name === 'bytes only') as EncodingCase;
  return Tokenizer.fromJson(json);
};

describe('text beyond the Basic Multilingual Plane', () => {
  test('has offsets that slice it, one range for all bytes of a character', async () => {
    const text = 'i ⭢ 😀 j';
    const { offsets } = await bytesOnly().encodeWithOffsets(text);
    const ranges = [...new Set(offsets.map(String))];
    expect(ranges).toEqual(['0,1', '1,2', '2,3', '3,4', '4,6', '6,7', '7,8']);
    expect(
      offsets.map(([start, end]) => text.slice(start, end)).filter((c) => c === '😀').length,
    ).toBe(4);
  });

  test('and lone surrogates: each becomes U+FFFD, alone and in its place', async () => {
    const tokenizer = bytesOnly();
    const pairs = [
      ['a\ud800b', 'a\ufffdb'],
      ['\ude00\ud83d', '\ufffd\ufffd'],
      ['\ud83d\ude00', '😀'],
    ] as const;
    for (const [text, same] of pairs) {
      expect(await tokenizer.encode(text)).toEqual(await tokenizer.encode(same));
      expect(await tokenizer.decode(await tokenizer.encode(text))).toBe(same);
    }
    const { offsets } = await tokenizer.encodeWithOffsets('a\ud800b');
    expect(offsets).toEqual([
      [0, 1],
      [1, 2],
      [1, 2],
      [1, 2],
      [2, 3],
    ]);
  });

  test('cut within a character decodes to U+FFFD', async () => {
    const tokenizer = bytesOnly();
    const ids = await tokenizer.encode('😀');
    expect(await tokenizer.decode(ids.slice(0, 2))).toBe('\ufffd');
    expect(await tokenizer.decode(ids)).toBe('😀');
  });
});

describe('merges', () => {
  test('written as strings give the same ids as pairs', async () => {
    const vocab = { a: 0, b: 1, c: 2, ab: 3, abc: 4 };
    const pairs = Tokenizer.fromJson(
      bpe(vocab, [
        ['a', 'b'],
        ['ab', 'c'],
      ]),
    );
    const strings = Tokenizer.fromJson(bpe(vocab, ['#version: 0.2', 'a b', 'ab c']));
    const texts = ['abc', 'aabbcc', 'cab'];
    expect(await strings.encodeBatch(texts)).toEqual(await pairs.encodeBatch(texts));
    expect(await pairs.encode('abc')).toEqual([4]);
  });

  test.each<[string, unknown[], RegExp]>([
    [
      'of three',
      [
        ['a', 'b'],
        ['a', 'b', 'ab'],
      ],
      /merge 1, \["a","b","ab"\], is not a pair/,
    ],
    ['of three in a string', ['a b', 'a  b'], /merge 1, "a {2}b", is not a pair/],
    ['that are no strings', [[1, 2]], /merge 0, \[1,2\], is not a pair/],
    ['that are nothing', [null], /merge 0, null, is not a pair/],
    ['of an unknown token', [['a', 'z']], /merge 0.*the token "z", which is not in the vocab/],
    ['into an unknown token', [['b', 'a']], /merge 0.*the token "ba", which is not in the vocab/],
  ])('%s are refused with their index', (_, merges, message) => {
    const make = () => Tokenizer.fromJson(bpe({ a: 0, b: 1, ab: 2 }, merges));
    expect(make).toThrow(TorchError);
    expect(make).toThrow(message);
  });

  test('with a prefix of inner tokens need it', () => {
    const options = { continuing_subword_prefix: '##' };
    const good = bpe({ a: 0, '##b': 1, ab: 2 }, [['a', '##b']], options);
    expect(Tokenizer.fromJson(good).vocabSize).toBe(3);
    const bad = bpe({ a: 0, b: 1, abc: 2, a_: 3 }, [['a', 'b']], options);
    expect(() => Tokenizer.fromJson(bad)).toThrow(/merge 0/);
  });
});

describe('parts on which the native library would end the process', () => {
  const model = { type: 'BPE', vocab: { a: 0 }, merges: [] };
  const charsMap = (bytes: number[]) => Buffer.from(bytes).toString('base64');

  test.each<[string, Json, RegExp]>([
    ['a fixed length of 0', { pre_tokenizer: { type: 'FixedLength', length: 0 } }, /length 0/],
    [
      'a decoder that strips ends',
      {
        decoder: {
          type: 'Sequence',
          decoders: [{ type: 'Strip', content: 'a', start: 0, stop: 3 }],
        },
      },
      /Strip.*not supported/,
    ],
    [
      'an empty table of characters',
      { normalizer: { type: 'Precompiled', precompiled_charsmap: '' } },
      /precompiled_charsmap/,
    ],
    [
      'a table of characters larger than it is',
      {
        normalizer: {
          type: 'Sequence',
          normalizers: [
            {
              type: 'Precompiled',
              precompiled_charsmap: charsMap([255, 255, 255, 255, 1, 0, 0, 0]),
            },
          ],
        },
      },
      /precompiled_charsmap/,
    ],
  ])('%s: refused', (_, part, message) => {
    expect(() => Tokenizer.fromJson({ version: '1.0', added_tokens: [], ...part, model })).toThrow(
      message,
    );
  });

  test('a normalizer that strips both ends, and a decoder that strips the start, are fine', async () => {
    const tokenizer = Tokenizer.fromJson({
      version: '1.0',
      added_tokens: [],
      normalizer: { type: 'Strip', strip_left: true, strip_right: true },
      decoder: { type: 'Strip', content: 'a', start: 1, stop: 0 },
      model,
    });
    expect(await tokenizer.encode(' a ')).toEqual([0]);
    expect(await tokenizer.decode([])).toBe('');
  });

  test('normalizers nested 10,000 deep: refused, not a crash', () => {
    const depth = 10_000;
    const deep = '{"type":"Sequence","normalizers":['.repeat(depth) + ']}'.repeat(depth);
    const json = `{"version":"1.0","normalizer":${deep},"model":{"type":"BPE","vocab":{},"merges":[]}}`;
    expect(() => Tokenizer.fromJson(json)).toThrow(TorchError);
  });
});

describe('a file', () => {
  test('loads, and its text comes back unchanged', async () => {
    const json = JSON.stringify(bpe({ a: 0 }, []), null, 3);
    const path = join(folder, 'tokenizer.json');
    writeFileSync(path, json);
    expect((await Tokenizer.fromFile(path)).toJson()).toBe(json);
    writeFileSync(path, `\ufeff${json}`);
    expect((await Tokenizer.fromFile(path)).toJson()).toBe(json);
  });

  test.each([
    ['no JSON', '{"version"', /not valid JSON/],
    ['another JSON', '{"vocab": {}}', /not a tokenizer\.json.*no "model"/],
    ['an array', '[]', /not a tokenizer\.json/],
    ['a model without a vocabulary', '{"model": {"type": "BPE"}}', /not a tokenizer: /],
    [
      'an unknown part',
      '{"normalizer": {"type": "X"}, "model": {"vocab": {}, "merges": []}}',
      /not a/,
    ],
  ])('with %s is refused by name', async (_, content, message) => {
    const path = join(folder, 'broken.json');
    writeFileSync(path, content);
    const loading = Tokenizer.fromFile(path);
    await expect(loading).rejects.toMatchObject({ name: 'TorchError', code: 'ERR_DATA' });
    await expect(loading).rejects.toThrow(message);
    await expect(loading).rejects.toThrow(/broken\.json/);
  });

  test('that is missing is refused by name', async () => {
    await expect(Tokenizer.fromFile(join(folder, 'none.json'))).rejects.toMatchObject({
      code: 'ERR_DATA',
      message: expect.stringMatching(/none\.json: there is no such file/) as string,
    });
  });

  test('that asks for padding and truncation gives whole texts and no padding', async () => {
    const cutting = {
      truncation: { direction: 'Right', max_length: 3, strategy: 'LongestFirst', stride: 0 },
      padding: {
        strategy: { Fixed: 8 },
        direction: 'Right',
        pad_to_multiple_of: null,
        pad_id: 0,
        pad_type_id: 0,
        pad_token: 'a',
      },
    };
    const tokenizer = Tokenizer.fromJson(bpe({ a: 0, b: 1 }, [], {}, cutting));
    expect(await tokenizer.encode('bbbbb')).toEqual([1, 1, 1, 1, 1]);
    expect(await tokenizer.encodeBatch(['b', 'bbbb'])).toEqual([[1], [1, 1, 1, 1]]);
  });

  test('with a post-processor adds its tokens only when asked', async () => {
    const rest = {
      added_tokens: [added(1, '<s>')],
      post_processor: {
        type: 'TemplateProcessing',
        single: [
          { SpecialToken: { id: '<s>', type_id: 0 } },
          { Sequence: { id: 'A', type_id: 0 } },
        ],
        pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 0 } }],
        special_tokens: { '<s>': { id: '<s>', ids: [1], tokens: ['<s>'] } },
      },
    };
    const tokenizer = Tokenizer.fromJson(bpe({ a: 0 }, [], {}, rest));
    expect(await tokenizer.encode('a')).toEqual([0]);
    expect(await tokenizer.encode('a', { addSpecialTokens: true })).toEqual([1, 0]);
    expect(await tokenizer.encodeBatch(['a'], { addSpecialTokens: true })).toEqual([[1, 0]]);
  });

  test('whose model cannot take a text says so', async () => {
    const tokenizer = Tokenizer.fromJson({
      model: { type: 'WordLevel', vocab: { a: 0 }, unk_token: '[UNK]' },
      added_tokens: [],
    });
    await expect(tokenizer.encode('z')).rejects.toMatchObject({ code: 'ERR_DATA' });
    await expect(tokenizer.encodeBatch(['a', 'z'])).rejects.toMatchObject({ code: 'ERR_DATA' });
  });
});

describe('the vocabulary', () => {
  const tokenizer = withSpecialTokens('<pad>', '</s>');

  test('counts added tokens', () => {
    expect(tokenizer.vocabSize).toBe(7);
  });

  test('with gaps is as large as its highest id needs', () => {
    expect(Tokenizer.fromJson(bpe({ a: 0, b: 50 }, [])).vocabSize).toBe(51);
  });

  test('goes from token to id and back', () => {
    expect(tokenizer.idOf('b')).toBe(1);
    expect(tokenizer.idOf('</s>')).toBe(6);
    expect(tokenizer.idOf('z')).toBeUndefined();
    expect(tokenizer.tokenOf(6)).toBe('</s>');
    for (const id of [7, -1, 0.5, NaN, 2 ** 32]) expect(tokenizer.tokenOf(id)).toBeUndefined();
  });

  test('may have a token named __proto__', async () => {
    const json = '{"added_tokens": [], "model": {"vocab": {"__proto__": 0, "a": 1}, "merges": []}}';
    const odd = Tokenizer.fromJson(json);
    expect([odd.vocabSize, odd.idOf('__proto__'), odd.tokenOf(0)]).toEqual([2, 0, '__proto__']);
    expect(await odd.encode('a')).toEqual([1]);
  });
});

describe('decoding', () => {
  const tokenizer = withSpecialTokens('<pad>');

  test('skips special tokens unless asked to keep them', async () => {
    expect(await tokenizer.decode([0, 5, 1])).toBe('a b');
    expect(await tokenizer.decode([0, 5, 1], { skipSpecialTokens: false })).toBe('a <pad> b');
  });

  test('takes the typed arrays that tensors give', async () => {
    expect(await tokenizer.decode(BigInt64Array.of(0n, 1n))).toBe('a b');
    expect(await tokenizer.decodeBatch([Int32Array.of(2), []])).toEqual(['c', '']);
  });

  test.each([[-1], [6], [0.5], [NaN], [2 ** 32], [10n ** 20n]])('refuses the id %s', async (id) => {
    const ids = [0, id] as number[];
    await expect(tokenizer.decode(ids)).rejects.toThrow(RangeError);
    await expect(tokenizer.decode(ids)).rejects.toThrow(/ids\[1\] must be an id from 0 to 5/);
    await expect(tokenizer.decodeBatch([[], ids])).rejects.toThrow(/ids\[1\]\[1\]/);
  });

  test('refuses what is no list', async () => {
    await expect(tokenizer.decode(5 as never)).rejects.toThrow(/an array of ids, got 5/);
  });
});

describe('encoding', () => {
  test('of more texts than one group keeps their order', async () => {
    const tokenizer = withSpecialTokens();
    const texts = Array.from({ length: 2500 }, (_, index) =>
      'abcde'.charAt(index % 5).repeat(index % 7),
    );
    const ids = await tokenizer.encodeBatch(texts);
    expect(ids).toEqual(texts.map((text) => [...text].map((letter) => 'abcde'.indexOf(letter))));
  });

  test('refuses what is no text, naming it', async () => {
    const tokenizer = withSpecialTokens();
    await expect(tokenizer.encode(5 as never)).rejects.toThrow(/text must be a string, got 5/);
    await expect(tokenizer.encodeBatch(['a', null as never])).rejects.toThrow(/texts\[1\].*null/);
    await expect(tokenizer.encode('a', { special: true } as never)).rejects.toThrow(
      /addSpecialTokens/,
    );
  });

  test('of many texts is stopped by a signal', async () => {
    const options = { signal: AbortSignal.abort() };
    await expect(withSpecialTokens().encodeBatch(['a'], options)).rejects.toThrow(/abort/i);
  });
});

describe('special ids', () => {
  test.each([
    [
      ['<pad>', '<bos>', '<eos>'],
      ['<pad>', '<bos>', '<eos>'],
    ],
    [
      ['[PAD]', '[BOS]', '[EOS]'],
      ['[PAD]', '[BOS]', '[EOS]'],
    ],
    [
      ['<s>', '<pad>', '</s>', '<unk>'],
      ['<pad>', '<s>', '</s>'],
    ],
    [
      ['[PAD]', '[UNK]', '[CLS]', '[SEP]'],
      ['[PAD]', '[CLS]', '[SEP]'],
    ],
    [
      ['<|endoftext|>', '<|im_start|>', '<|im_end|>'],
      ['<|endoftext|>', '<|im_start|>', '<|im_end|>'],
    ],
  ])('of %j are found as %j', (tokens, [pad, bos, eos]) => {
    const tokenizer = withSpecialTokens(...tokens);
    const special = findSpecialIds(tokenizer);
    expect(special.tokens).toEqual({ pad, bos, eos });
    for (const role of ['pad', 'bos', 'eos'] as const) {
      expect(tokenizer.tokenOf(special[role])).toBe(special.tokens[role]);
    }
    expect(special.detected).toEqual(['pad', 'bos', 'eos']);
  });

  test('given by id or by token are kept, and the choice can be told', () => {
    const tokenizer = withSpecialTokens('<pad>', '<|endoftext|>');
    const special = findSpecialIds(tokenizer, { bos: 4, eos: '<|endoftext|>' });
    expect(special).toEqual({
      pad: 5,
      bos: 4,
      eos: 6,
      tokens: { pad: '<pad>', bos: 'e', eos: '<|endoftext|>' },
      detected: ['pad'],
    });
    expect(describeSpecialIds(special)).toBe(
      'pad 5 "<pad>" (found), bos 4 "e" (given), eos 6 "<|endoftext|>" (given)',
    );
  });

  test.each<[string, SpecialIdOptions, typeof Error, RegExp]>([
    [
      'pad that is eos',
      { pad: 6, bos: 5, eos: 6 },
      RangeError,
      /pad and eos are both 6.*never learn/,
    ],
    ['bos that is pad', { pad: 5, bos: 5, eos: 6 }, RangeError, /bos and pad are both 5/],
    ['bos that is eos', { pad: 5, bos: 6, eos: 6 }, RangeError, /bos and eos are both 6/],
    [
      'an id outside',
      { pad: 7, bos: 5, eos: 6 },
      RangeError,
      /pad must be an id from 0 to 6.*got 7/,
    ],
    ['a negative id', { pad: -1, bos: 5, eos: 6 }, RangeError, /pad must be an id from 0/],
    ['a fraction', { pad: 0.5, bos: 5, eos: 6 }, TypeError, /pad must be an integer id/],
    ['an unknown token', { pad: '<x>' }, TypeError, /pad "<x>" is not in the vocabulary/],
    ['an unknown role', { unk: 5 } as never, TypeError, /unknown option "unk"/],
  ])('%s: refused', (_, options, kind, message) => {
    const find = () => findSpecialIds(withSpecialTokens('<s>', '</s>'), options);
    expect(find).toThrow(kind);
    expect(find).toThrow(message);
  });

  test('that have no usual name must be given', () => {
    const only = withSpecialTokens('<|endoftext|>');
    expect(() => findSpecialIds(only)).toThrow(
      /no free token with a usual name for bos.*option bos/,
    );
    expect(() => findSpecialIds(only, { bos: 'a' })).toThrow(/for eos/);
    expect(() => findSpecialIds(only, { bos: 'a', eos: '<|endoftext|>' })).toThrow(/for pad/);
  });
});
