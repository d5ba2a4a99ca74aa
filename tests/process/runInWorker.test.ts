import { describe, expect, expectTypeOf, test } from 'vitest';
import { runInWorker, TorchError, type TrainingEvents } from 'torchformer';
import { runScript } from './support.js';

const module = new URL('./children/workerTasks.mjs', import.meta.url);
const run = (task: string, options: Parameters<typeof runInWorker>[1] & { input?: object } = {}) =>
  runInWorker(module, { ...options, input: { task, ...options.input } });

describe('a training in a worker thread', () => {
  test('returns what its function returns, and the events come in order', async () => {
    const events: string[] = [];
    const on =
      <Name extends keyof TrainingEvents>(name: Name) =>
      (event: TrainingEvents[Name]) => {
        const { step } = event as { step?: number };
        events.push(step === undefined ? name : `${name} ${step}`);
      };
    const result = await run('train', {
      input: { epochs: 2, validates: true },
      listener: {
        start: on('start'),
        step: on('step'),
        validation: on('validation'),
        epoch: on('epoch'),
        end: on('end'),
      },
    });
    expect(result).toMatchObject({ reason: 'finished', steps: 4 });
    expect(events.map((event) => event.replace(/^epoch \d+/, 'epoch'))).toEqual([
      'start 0',
      ...['step 1', 'step 2', 'validation 2', 'epoch'],
      ...['step 3', 'step 4', 'validation 4', 'epoch'],
      'end 4',
    ]);
  });

  test('computes what it computes elsewhere', async () => {
    const input = { epochs: 3 };
    const [first, second] = await Promise.all([run('train', { input }), run('train', { input })]);
    expect(second).toEqual(first);
    expect((first as { losses: number[] }).losses).toHaveLength(6);
  });

  test('stops when the signal aborts', async () => {
    const controller = new AbortController();
    const result = await run('train', {
      input: { epochs: 1e6 },
      signal: controller.signal,
      listener: { step: ({ step }) => (step === 3 ? controller.abort() : undefined) },
    });
    expect(result).toMatchObject({ reason: 'aborted' });
  });

  test('waits for the promises of the listener', async () => {
    let handling = false;
    const overlapping: string[] = [];
    await run('train', {
      input: { epochs: 3 },
      listener: {
        async epoch() {
          handling = true;
          await new Promise((resolve) => setTimeout(resolve, 20));
          handling = false;
        },
        step: ({ step }) => void (handling && overlapping.push(`step ${step}`)),
      },
    });
    expect(overlapping).toEqual([]);
  });

  test.each(['step', 'epoch'] as const)('ends with the error of a listener of %s', async (name) => {
    const error = new Error('the disk of the listener is full');
    let calls = 0;
    const failing = () => {
      calls++;
      throw error;
    };
    const training = run('train', { input: { epochs: 1e6 }, listener: { [name]: failing } });
    await expect(training).rejects.toBe(error);
    expect(calls).toBeGreaterThan(0);
  });
});

test('an evaluation in a worker thread passes its progress', async () => {
  const messages: string[] = [];
  const listener = { message: (text: string) => void messages.push(text) };
  const result = (await run('evaluate', { listener })) as { loss: number; batches: number };
  expect(result.batches).toBe(2);
  expect(result.loss).toBeGreaterThan(0);
  expect(messages).toEqual(['batch 1', 'batch 2']);
});

test('input and result are copied', async () => {
  const data = { list: [1, 2], floats: Float32Array.of(0.5), map: new Map([['a', NaN]]) };
  expect(await run('echo', { input: { data } })).toEqual({ task: 'echo', data });
});

test('the result has the type that is asked for', () => {
  expectTypeOf(runInWorker<{ loss: number }>).returns.resolves.toEqualTypeOf<{ loss: number }>();
});

describe('the signal', () => {
  test('that was aborted before is aborted in the worker', async () => {
    const signal = AbortSignal.abort(new Error('too late'));
    expect(await run('aborted', { signal })).toEqual([true, 'too late']);
  });

  test('passes its reason', async () => {
    const controller = new AbortController();
    const listener = { message: () => controller.abort(new Error('enough')) };
    expect(await run('afterAbort', { signal: controller.signal, listener })).toBe('enough');
  });

  test('keeps no listener of ours afterwards', async () => {
    const { signal } = new AbortController();
    const added = new Set<unknown>();
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      added.add(args[1]);
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      added.delete(args[1]);
      remove(...args);
    };
    await run('echo', { signal });
    expect(added).toEqual(new Set());
  });
});

describe('an error in the worker', () => {
  test('of this package has its class, code and cause', async () => {
    const error: unknown = await run('torchError').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TorchError);
    expect(error).toMatchObject({ code: 'ERR_DATA', message: 'line 3 is broken' });
    expect((error as TorchError).cause).toBeInstanceOf(RangeError);
    expect((error as TorchError).stack).toContain('workerTasks.mjs');
  });

  test('of an operator too', async () => {
    await expect(run('noSuchOp')).rejects.toMatchObject({
      name: 'TorchError',
      code: 'ERR_UNKNOWN_OP',
    });
  });

  test("of JavaScript's classes has its class", async () => {
    await expect(run('rangeError')).rejects.toBeInstanceOf(RangeError);
  });

  test('that is not an Error is told in one', async () => {
    await expect(run('notAnError')).rejects.toThrow('thrown: a text');
  });

  test('outside of the function rejects', async () => {
    await expect(run('diesLater')).rejects.toMatchObject({
      code: 'ERR_DATA',
      message: 'thrown by a timer',
    });
  });
});

describe('a worker that ends', () => {
  test('by process.exit() rejects', async () => {
    await expect(run('exits')).rejects.toMatchObject({
      code: 'ERR_WORKER',
      message: expect.stringMatching(
        /ended with code 3 before the function of .*workerTasks/,
      ) as string,
    });
  });

  test('for lack of JavaScript memory rejects', async () => {
    const worker = { resourceLimits: { maxOldGenerationSizeMb: 60 } };
    await expect(run('fillsTheHeap', { worker })).rejects.toMatchObject({
      code: 'ERR_OUT_OF_MEMORY',
      message: expect.stringContaining('maxOldGenerationSizeMb') as string,
    });
  });

  test('takes what its function has left running with it', async () => {
    expect(await run('leavesATimer')).toBe(0);
  });
});

describe('arguments', () => {
  test('a module without a function is an error that names it', async () => {
    const other = 'data:text/javascript,export const train = 1';
    await expect(runInWorker(new URL(other))).rejects.toThrow(
      /must have a function as default export/,
    );
  });

  test('a module that does not exist is an error', async () => {
    await expect(runInWorker('no/such/module.js')).rejects.toThrow(/Cannot find module/);
  });

  test('results that cannot be copied are an error that says what can', async () => {
    await expect(run('notData')).rejects.toThrow(/result of .* must be plain data/);
  });

  test('so are inputs', async () => {
    await expect(run('echo', { input: { f: () => 1 } })).rejects.toThrow(
      /input must be plain data/,
    );
  });

  test('unknown options and listeners without an event are errors', async () => {
    await expect(runInWorker(module, { listeners: [] } as object)).rejects.toThrow(/listeners/);
    await expect(runInWorker(module, { listener: {} })).rejects.toThrow(/events: start, step/);
    await expect(runInWorker(3 as unknown as string)).rejects.toThrow(/must be a URL such as/);
  });
});

test('the process ends after a run, also if it was started by --eval', () => {
  const script = `import { runInWorker } from 'torchformer';
    console.log(await runInWorker(${JSON.stringify(module.href)}, { input: { task: 'echo' } }));`;
  expect(runScript(script)).toEqual({ status: 0, output: "{ task: 'echo' }\n", errors: '' });
});
