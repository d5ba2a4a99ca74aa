import { beforeAll, describe, expect, test } from 'vitest';
import {
  batches,
  checkSpecialIds,
  describeReport,
  describeSpecialIds,
  encodePairs,
  findSpecialIds,
  frame,
  makeBatch,
  newReport,
  padSequences,
  readPairs,
  SeededRandom,
  Tokenizer,
  trainBpe,
  trainCharacters,
  TranslationDataset,
} from 'torchformer';
import { tinyTask, type TinyTask } from '../../support/tinyTranslation.js';

let task: TinyTask;
let tokenizer: Tokenizer;
beforeAll(async () => {
  task = await tinyTask();
  ({ tokenizer } = task);
});

type Case = [name: string, call: () => unknown, message: string];

/** Each call must fail with an error of our own that has the message. */
function refuses(cases: Case[], kind: typeof TypeError | typeof RangeError = TypeError): void {
  test.each(cases)('refuses %s', async (_, call, message) => {
    const calling = (async () => call())();
    await expect(calling).rejects.toThrow(kind);
    await expect(calling).rejects.toThrow(message);
  });
}

/** For arguments of any kind. */
const any = (value?: unknown): never => value as never;

const sparse = ['a', , 'b'];

describe('batches', () => {
  refuses([
    ['null', () => batches(any(null)), 'batches: dataset must be a TranslationDataset, got null'],
    ['undefined', () => batches(any()), 'got undefined; make one with TranslationDataset.from'],
    ['an array', () => batches(any([])), 'got an array of 0'],
    [
      'shuffle 1',
      () => batches(task.dataset, { shuffle: any(1) }),
      'shuffle must be true or false',
    ],
    ['a device', () => batches(task.dataset, { device: any('gpu') }), 'batches: device must be'],
    ['batchSize null', () => batches(task.dataset, { batchSize: any(null) }), 'batchSize must'],
  ]);
});

describe('makeBatch and padSequences', () => {
  refuses([
    ['null', () => makeBatch(any(null), 0), 'makeBatch: pairs must be an array'],
    ['[null]', () => makeBatch([any(null)], 0), 'makeBatch: pairs[0] must be { src, tgt, row }'],
    ['a hole', () => makeBatch(any(new Array(1)), 0), 'pairs[0] must be { src, tgt, row }'],
    ['texts', () => makeBatch(any([{ src: 'a', tgt: 'b' }]), 0), 'pairs[0].src must be an array'],
    ['no pad', () => makeBatch([{ src: [1], tgt: [1, 2], row: 1 }], any()), 'pad must be'],
    ['null', () => padSequences(any(null), 0), 'padSequences: sequences must be an array'],
    ['a flat list', () => padSequences(any([1, 2]), 0), 'sequences[0] must be an array of ids'],
    ['an id as text', () => padSequences([[1, any('2')]], 0), 'sequences[0][1] must be an integer'],
  ]);
  refuses(
    [
      ['1.5 as an id', () => padSequences([[1.5]], 0), 'sequences[0][0] must be an integer at'],
      ['nothing to pad', () => padSequences([], 0), 'sequences must not be empty'],
    ],
    RangeError,
  );

  test('take 200,000 rows', () => {
    const rows = Array.from({ length: 200_000 }, (_, index) => (index === 7 ? [1, 2] : [3]));
    const padded = padSequences(rows, 0);
    expect(padded.shape).toEqual([200_000, 2]);
    padded.dispose();
  });
});

describe('readPairs', () => {
  const bytes = [Buffer.from('en,de\na,b\n')];
  const columns = { src: 'en', tgt: 'de' };
  const read = (options: object) => () => readPairs(bytes, { ...columns, ...options });
  refuses([
    ['no source', () => readPairs(any(), columns), 'readPairs: the source must be a path'],
    ['an empty path', () => readPairs('', columns), 'got the string ""'],
    ['a number', () => readPairs(any(5), columns), 'got 5'],
    ['a web address', () => readPairs(new URL('https://a.b/c'), columns), 'download it first'],
    ['bare bytes', () => readPairs(any(bytes[0]), columns), 'to read these bytes, pass [bytes]'],
    ['chunks of text', () => readPairs(any(['en,de\n']), columns), 'must yield Uint8Array chunks'],
    [
      'no options',
      () => readPairs(bytes, any()),
      'readPairs: options with src and tgt are required',
    ],
    ["quoted: 'no'", read({ quoted: 'no' }), 'quoted must be true or false, got the string "no"'],
    ["header: 'no'", read({ header: 'no' }), 'header must be true or false, got the string "no"'],
    ['signal: 5', read({ signal: 5 }), 'signal must be an AbortSignal, got 5'],
    ['delimiter: null', read({ delimiter: null }), 'delimiter must be one character'],
    ['delimiter: [","]', read({ delimiter: [','] }), 'delimiter must be one character'],
    ['format: null', read({ format: null }), 'format must be'],
  ]);
});

describe('training of tokenizers', () => {
  for (const train of [trainBpe, trainCharacters]) {
    const of = (texts: unknown, options?: unknown) => () => train(any(texts), any(options));
    describe(train.name, () => {
      refuses([
        ['undefined', of(undefined), `${train.name}: texts must be an iterable of strings`],
        ['a function', of(() => ['a']), 'got the function'],
        ['a text', of('a text'), 'got the string "a text"; for a single text, pass [text]'],
        ['a list with a hole', of(sparse), 'text 1 must be a string, got undefined'],
        ['pairs', of([{ src: 'a', tgt: 'b' }]), 'text 0 must be a string, got an Object'],
        ['signal 5', of(['a'], { signal: 5 }), 'signal must be an AbortSignal, got 5'],
        ['special tokens', of(['a'], { specialTokens: '<s>' }), 'specialTokens must be an array'],
        ['null for them', of(['a'], { specialTokens: null }), 'specialTokens must be an array'],
        [
          'vocabSize null',
          of(['a'], { vocabSize: null }),
          'vocabSize must be an integer, got null',
        ],
      ]);
    });
  }
});

describe('Tokenizer', () => {
  const circular: { self?: unknown } = {};
  circular.self = circular;
  const Constructor = Tokenizer as unknown as new () => Tokenizer;
  refuses([
    ['new', () => new Constructor(), 'Tokenizer: the constructor is private; use'],
    ['a descriptor for a path', () => Tokenizer.fromFile(any(5)), 'path must be a path or a file:'],
    ['no path', () => Tokenizer.fromFile(any()), 'Tokenizer.fromFile: path must be a path'],
    ['an empty path', () => Tokenizer.fromFile(''), 'got the string ""'],
    ['5 for JSON', () => Tokenizer.fromJson(any(5)), 'json must be a string or an object'],
    ['a circle', () => Tokenizer.fromJson(circular), 'json cannot be written as JSON'],
    ['null', () => tokenizer.encodeBatch(any(null)), 'texts must be an array of strings, got null'],
    [
      'a text',
      () => tokenizer.encodeBatch(any('abc')),
      'got the string "abc"; for a single string,',
    ],
    ['a hole', () => tokenizer.encodeBatch(any(sparse)), 'texts[1] must be a string, got undef'],
    [
      "addSpecialTokens: 'x'",
      () => tokenizer.encodeBatch(['a'], { addSpecialTokens: any('x') }),
      'Tokenizer.encodeBatch: addSpecialTokens must be true or false, got the string "x"',
    ],
    [
      'addSpecialTokens: 1',
      () => tokenizer.encode('a', { addSpecialTokens: any(1) }),
      'Tokenizer.encode: addSpecialTokens must be true or false, got 1',
    ],
    ['signal 5', () => tokenizer.encodeBatch(['a'], { signal: any(5) }), 'signal must be an Abort'],
    ['ids null', () => tokenizer.decodeBatch(any(null)), 'ids must be an array of arrays of ids'],
    ['ids "ab"', () => tokenizer.decodeBatch(any('ab')), 'ids must be an array of arrays of ids'],
    ['a hole', () => tokenizer.decodeBatch(any(new Array(1))), 'ids[0] must be an array of ids'],
    [
      "skipSpecialTokens: 'x'",
      () => tokenizer.decodeBatch([[4]], { skipSpecialTokens: any('x') }),
      'Tokenizer.decodeBatch: skipSpecialTokens must be true or false, got the string "x"',
    ],
    [
      'skipSpecialTokens: null',
      () => tokenizer.decode([4], { skipSpecialTokens: any(null) }),
      'Tokenizer.decode: skipSpecialTokens must be true or false, got null',
    ],
    ['a token for an id', () => tokenizer.tokenOf(any('a')), 'id must be a number'],
    ['an id for a token', () => tokenizer.idOf(any(5)), 'Tokenizer.idOf: token must be a string'],
  ]);
  refuses(
    [
      ['null in ids', () => tokenizer.decode([any(null)]), 'ids[0] must be an id from 0'],
      ['text in ids', () => tokenizer.decode([any('4')]), 'got the string "4"'],
    ],
    RangeError,
  );
});

describe('special ids', () => {
  refuses([
    ['null', () => findSpecialIds(any(null)), 'findSpecialIds: tokenizer must be a Tokenizer, got'],
    ['a path', () => findSpecialIds(any('a.json')), 'make one with Tokenizer.fromFile'],
    ['null for ids', () => checkSpecialIds(any(null), 9), 'specialIds must be { pad, bos, eos }'],
    ['no size', () => checkSpecialIds({ pad: 0, bos: 1, eos: 2 }, any()), 'vocabSize must be'],
    ['ids alone', () => describeSpecialIds(any({ pad: 0, bos: 1, eos: 2 })), 'special.tokens must'],
    [
      'a symbol for an id',
      () => describeSpecialIds({ ...findSpecialIds(tokenizer), eos: any(Symbol('s')) }),
      'special.eos must be an integer, got a symbol',
    ],
    ['null', () => describeSpecialIds(any(null)), 'special must be the result of findSpecialIds'],
    ['no ids', () => frame(any(), { pad: 0, bos: 1, eos: 2 }), 'frame: ids must be an array'],
    ['no bos and eos', () => frame([3], any()), 'frame: specialIds must be'],
  ]);
});

describe('encodePairs and TranslationDataset.fromPairs', () => {
  const functions = {
    encodePairs,
    'TranslationDataset.fromPairs': (pairs: never, options: never) =>
      TranslationDataset.fromPairs(pairs, options),
  };
  for (const [owner, encode] of Object.entries(functions)) {
    const one = [{ src: 'one', tgt: '1' }];
    const of = (pairs: unknown, options: object | undefined = {}) => {
      return () => encode(any(pairs), any({ tokenizer, specialIds: task.specialIds, ...options }));
    };
    refuses([
      [`${owner}: null`, of(null), `${owner}: pairs must be an array of { src, tgt }`],
      [`${owner}: [null]`, of([null]), `${owner}: pairs[0] must be { src, tgt } with two texts`],
      [`${owner}: a hole`, of(new Array(1)), `${owner}: pairs[0] must be { src, tgt }`],
      [`${owner}: lists`, of([['a', 'b']]), 'pairs[0] must be { src, tgt } with two texts, got an'],
      [`${owner}: no target`, of([{ src: 'a' }]), 'pairs[0].tgt must be a string, got undefined'],
      [
        `${owner}: no options`,
        () => encode(any(one), any()),
        `${owner}: options with tokenizer and`,
      ],
      [`${owner}: tokenizer {}`, of(one, { tokenizer: {} }), 'tokenizer must be a Tokenizer'],
      [`${owner}: no ids`, of(one, { specialIds: null }), 'specialIds must be { pad, bos, eos }'],
      [`${owner}: signal`, of(one, { signal: 5 }), 'signal must be an AbortSignal'],
      [`${owner}: report`, of(one, { report: {} }), 'report.name must be a string'],
      [`${owner}: maxLength`, of(one, { maxLength: null }), 'maxLength must be an integer'],
    ]);
  }
});

describe('TranslationDataset', () => {
  const source = [Buffer.from('en,de\none,1\n')];
  const all = () => ({ tokenizer, specialIds: task.specialIds, src: 'en', tgt: 'de' });
  const read = (options: object) => () => {
    return TranslationDataset.fromFile(source, { ...all(), ...options });
  };
  const make = (pairs: unknown, options: unknown) => () => {
    return new TranslationDataset(any(pairs), any(options));
  };
  const settings = { specialIds: { pad: 0, bos: 1, eos: 2 }, vocabSize: 9 };
  refuses([
    ['no options', make([], undefined), 'options with specialIds and vocabSize are required'],
    ['null', make(null, settings), 'TranslationDataset: pairs must be an array'],
    ['[null]', make([null], settings), 'pairs[0] must be { src, tgt, row } with two arrays of ids'],
    ['a report', make([], { ...settings, report: 5 }), 'report must be a DataReport'],
    [
      'a file without options',
      () => TranslationDataset.fromFile(source, any()),
      'options with src',
    ],
    [
      'a file without a name',
      () => TranslationDataset.fromFile(any(), all()),
      'fromFile: the source',
    ],
    ['a file, tokenizer 5', read({ tokenizer: 5 }), 'fromFile: tokenizer must be a Tokenizer'],
    ['a file, src 5', read({ src: 5 }), 'fromFile: src must be the name of a column'],
    ['a file, maxlength', read({ maxlength: 5 }), 'valid options: delimiter, format'],
  ]);
});

describe('SeededRandom and reports', () => {
  const random = new SeededRandom(1);
  refuses([
    ['pick from null', () => random.pick(any(null)), 'SeededRandom.pick: list must be an array'],
    ['shuffle of a text', () => random.shuffle(any('abc')), 'shuffle: array must be an array'],
    ['a report without name', () => newReport(any()), 'newReport: name must be a string'],
    ['no report', () => describeReport(any(null)), 'describeReport: report must be a DataReport'],
    ['half a report', () => describeReport(any({ name: 'a' })), 'report.rows must be an integer'],
  ]);
});
