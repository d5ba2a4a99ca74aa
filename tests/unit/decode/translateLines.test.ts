/** Lines of a stream: windows, order, backpressure, errors, abort. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { noGrad, Translator, type LineReport } from 'torchformer';
import { fiftyPairs, tinyModel, tinyTask, type TinyTask } from '../../support/tinyTranslation.js';

let task: TinyTask;
let translator: Translator;
beforeAll(async () => {
  task = await tinyTask();
  const { tokenizer, specialIds } = task;
  translator = new Translator(tinyModel(tokenizer.vocabSize).eval(), { tokenizer, specialIds });
});
afterAll(() => translator.dispose());

const maxLength = 4;
const tooLong = 'twenty one. thirty two. forty three.';

/** Everything that an iterable yields, and the error that ended it. */
async function collect(outputs: AsyncIterable<string>): Promise<{ got: string[]; error: unknown }> {
  const got: string[] = [];
  try {
    for await (const output of outputs) got.push(output);
  } catch (error) {
    return { got, error };
  }
  return { got, error: null };
}

/** The first `count` of endless lines, and how many were read. */
function countedLines(count = Infinity) {
  const state = { read: 0, closed: false };
  function* lines() {
    try {
      while (state.read < count) yield fiftyPairs[state.read++ % 50]?.src as string;
    } finally {
      state.closed = true;
    }
  }
  return { state, lines: lines() };
}

describe('the outputs', () => {
  test('are those of translate, in the order of the lines, whatever the window', async () => {
    const lines = fiftyPairs.map(({ src }) => src).concat(['', '  ', 'forty']);
    const expected = await translator.translate(lines, { maxLength });
    for (const window of [1, 7, 256]) {
      const options = { maxLength, window, batchSize: 3 };
      expect(await collect(translator.translateLines(lines, options))).toEqual({
        got: expected,
        error: null,
      });
    }
  });

  test('come from arrays, generators and async generators alike', async () => {
    async function* slowly() {
      for (const line of ['twenty', 'forty']) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        yield line;
      }
    }
    const expected = await translator.translate(['twenty', 'forty'], { maxLength });
    const sources = [['twenty', 'forty'], new Set(['twenty', 'forty']), slowly()];
    for (const source of sources) {
      const { got } = await collect(translator.translateLines(source, { maxLength }));
      expect(got).toEqual(expected);
    }
  });

  test('of lone surrogates and control characters are those of what they become in UTF-8', async () => {
    const lines = ['twenty \ud800', '\udc00\ud800', 'forty\u0000\u001b[2J', '\u0007'];
    const expected = await translator.translate(
      ['twenty \ufffd', '\ufffd\ufffd', 'forty\u0000\u001b[2J', '\u0007'],
      { maxLength },
    );
    const { got } = await collect(translator.translateLines(lines, { maxLength }));
    expect(got).toEqual(expected);
    expect(got[3]).toBe('');
  });

  test('of no lines are none', async () => {
    expect(await collect(translator.translateLines([]))).toEqual({ got: [], error: null });
  });

  test('come before the source ends', async () => {
    let finish = (): void => undefined;
    async function* conversation() {
      yield 'twenty';
      await new Promise<void>((resolve) => (finish = resolve));
      yield 'forty';
    }
    const outputs = translator.translateLines(conversation(), { maxLength });
    const [twenty, forty] = await translator.translate(['twenty', 'forty'], { maxLength });
    expect(await outputs.next()).toEqual({ done: false, value: twenty });
    finish();
    expect(await outputs.next()).toEqual({ done: false, value: forty });
    expect(await outputs.next()).toEqual({ done: true, value: undefined });
  });

  test('are split into sentences with split, each in its line', async () => {
    const lines = ['Twenty one. Thirty two. Forty three.', 'forty'];
    const parts = ['Twenty one.', 'Thirty two.', 'Forty three.', 'forty'];
    const [one, two, three, forty] = await translator.translate(parts, { maxLength });
    const outputs = translator.translateLines(lines, { maxLength, split: true });
    expect((await collect(outputs)).got).toEqual([`${one} ${two} ${three}`, forty]);
  });
});

describe('memory stays the same:', () => {
  test('no more is read than two windows ahead of what is taken', async () => {
    const { state, lines } = countedLines();
    const outputs = translator.translateLines(lines, { maxLength: 1, window: 8, batchSize: 8 });
    for (let taken = 1; taken <= 100; taken++) {
      await outputs.next();
      expect(state.read - taken).toBeLessThanOrEqual(17);
    }
    await outputs.return?.();
  });

  test('leaving the loop closes the source', async () => {
    const { state, lines } = countedLines();
    for await (const output of translator.translateLines(lines, { maxLength: 1 })) {
      expect(output).toBeTypeOf('string');
      break;
    }
    expect(state.closed).toBe(true);
  });

  test('nothing is read before the first output is asked for', () => {
    const { state, lines } = countedLines();
    translator.translateLines(lines);
    expect(state.read).toBe(0);
  });
});

describe('a line that is too long', () => {
  const lines = ['twenty', tooLong, 'forty', tooLong];

  test('is an error with its number and both lengths, after the outputs of the lines before', async () => {
    const { got, error } = await collect(translator.translateLines(lines, { maxLength }));
    expect(got).toEqual(await translator.translate(['twenty'], { maxLength }));
    expect(error).toMatchObject({ name: 'TextTooLongError', index: 1, tokens: 38, limit: 32 });
    expect((error as Error).message).toMatch(/^Translator\.translateLines: line 2 has 38 tokens/);
  });

  test('has an empty output with skip, and is counted', async () => {
    const reports: LineReport[] = [];
    const { got } = await collect(
      translator.translateLines(lines, {
        maxLength,
        onTooLong: 'skip',
        onProgress: (report) => reports.push(report),
      }),
    );
    const [twenty, forty] = await translator.translate(['twenty', 'forty'], { maxLength });
    expect(got).toEqual([twenty, '', forty, '']);
    expect(reports.at(-1)).toEqual({
      lines: 4,
      skipped: { count: 2, first: [2, 4] },
      split: { count: 0, first: [] },
    });
  });

  test('is translated in parts with split, and counted', async () => {
    let last: LineReport | null = null;
    const onProgress = (report: LineReport) => {
      last = report;
    };
    const options = { maxLength, onTooLong: 'split', onProgress } as const;
    const { got } = await collect(translator.translateLines(lines, options));
    const parts = await translator.translate(['twenty one. thirty two.', 'forty three.'], {
      maxLength,
    });
    expect(got[1]).toBe(parts.join(' '));
    expect(last).toMatchObject({ lines: 4, split: { count: 2, first: [2, 4] } });
  });

  test('reports the first ten numbers, however many there are', async () => {
    let last: LineReport | null = null;
    const onProgress = (report: LineReport) => {
      last = report;
    };
    const many = Array.from({ length: 30 }, () => tooLong);
    await collect(translator.translateLines(many, { onTooLong: 'skip', onProgress }));
    expect(last).toMatchObject({
      skipped: { count: 30, first: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] },
    });
  });
});

describe('errors', () => {
  test('of the source come after the outputs of the lines before', async () => {
    function* broken() {
      yield 'twenty';
      throw new Error('the disk is gone');
    }
    const { got, error } = await collect(translator.translateLines(broken(), { maxLength }));
    expect(got).toHaveLength(1);
    expect(error).toEqual(new Error('the disk is gone'));
  });

  test('name the line that is not a string', async () => {
    const lines = ['twenty', 7] as string[];
    const { error } = await collect(translator.translateLines(lines, { maxLength }));
    expect(error).toEqual(
      new TypeError('Translator.translateLines: line 2 must be a string, got 7'),
    );
  });

  test('name the line whose probabilities are NaN', async () => {
    const { tokenizer, specialIds } = task;
    const model = tinyModel(tokenizer.vocabSize).eval();
    noGrad(() => model.generator.proj.bias?.fill_(NaN));
    const broken = new Translator(model, { tokenizer, specialIds });
    const { error } = await collect(broken.translateLines(['', 'forty']));
    expect(error).toMatchObject({ code: 'ERR_NON_FINITE' });
    expect((error as Error).message).toMatch(/^Translator\.translateLines: line 2/);
    broken.dispose();
  });

  test.each<[string, unknown, unknown, RegExp]>([
    ['a string', 'twenty', {}, /lines must be an iterable of strings, got .*; for one text use/],
    ['a number', 7, {}, /lines must be an iterable of strings, got 7/],
    ['an unknown option', [], { windows: 3 }, /unknown option .*windows/],
    ['a window of 0', [], { window: 0 }, /window must be .*got 0/],
    [
      'another action',
      [],
      { onTooLong: 'cut' },
      /onTooLong must be 'error', 'skip' or 'split', got .*cut/,
    ],
    ['progress that is no function', [], { onProgress: 1 }, /onProgress must be a function/],
  ])('%s is refused at once', (_name, lines, options, message) => {
    expect(() => translator.translateLines(lines as string[], options as object)).toThrow(message);
  });

  test('options of the search are refused without lines too', async () => {
    const { error } = await collect(translator.translateLines([], { beam: 0 }));
    expect(String(error)).toMatch(/Translator\.translateLines: beam must be/);
  });
});

describe('an abort', () => {
  test('before the first line rejects with the reason, and reads nothing', async () => {
    const { state, lines } = countedLines();
    const signal = AbortSignal.abort(new Error('not today'));
    const { got, error } = await collect(translator.translateLines(lines, { signal }));
    expect({ got, error }).toEqual({ got: [], error: new Error('not today') });
    expect(state.read).toBe(0);
  });

  test('during the translation rejects with the reason and closes the source', async () => {
    const { state, lines } = countedLines();
    const controller = new AbortController();
    const outputs = translator.translateLines(lines, { signal: controller.signal, maxLength });
    await outputs.next();
    controller.abort(new Error('enough'));
    const { error } = await collect(outputs);
    expect(error).toEqual(new Error('enough'));
    expect(state.closed).toBe(true);
  });

  test('while the source waits rejects without waiting for it', async () => {
    async function* endless() {
      yield 'twenty';
      await new Promise(() => undefined);
    }
    const controller = new AbortController();
    const { signal } = controller;
    const outputs = translator.translateLines(endless(), { signal, maxLength });
    await outputs.next();
    const next = outputs.next();
    setTimeout(() => controller.abort(new Error('enough')), 10);
    await expect(next).rejects.toThrow('enough');
  });

  test('after the end changes nothing', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const { got, error } = await collect(
      translator.translateLines(['twenty'], { signal, maxLength }),
    );
    controller.abort();
    expect({ count: got.length, error }).toEqual({ count: 1, error: null });
  });
});
