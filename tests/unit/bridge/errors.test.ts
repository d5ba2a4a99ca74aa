import { describe, expect, it } from 'vitest';
import {
  call,
  callAsync,
  callTensor,
  empty,
  ones,
  tensor,
  Tensor,
  TorchError,
  zeros,
  type TorchErrorCode,
} from 'torchformer';

const a = ones([2, 3]);

/** Faults that only libtorch can see, with the code that each becomes. */
const faults: [code: TorchErrorCode, op: string, ...args: unknown[]][] = [
  ['ERR_SHAPE', 'aten::mm', a, a],
  ['ERR_SHAPE', 'aten::add.Tensor', a, ones([4])],
  ['ERR_INDEX', 'aten::select.int', a, 0, 5],
  ['ERR_INDEX', 'aten::index_select', a, 0, tensor([9n])],
  ['ERR_DTYPE', 'aten::mm', a, ones([3, 2], { dtype: 'int64' })],
  ['ERR_DTYPE', 'aten::add_.Tensor', ones([2], { dtype: 'int64' }), ones([2])],
  ['ERR_OUT_OF_MEMORY', 'aten::empty.memory_format', [2 ** 50]],
  [
    'ERR_NOT_IMPLEMENTED',
    'aten::_to_copy',
    callTensor('aten::empty.memory_format', [2], { device: 'meta' }),
    { device: 'cpu' },
  ],
  ['ERR_UNKNOWN_OP', 'aten::no_such_op', a],
  ['ERR_ARGUMENT', 'aten::mm', a],
];

function stillComputes(): void {
  expect(a.matmul(ones([3, 1])).toArray()).toEqual([[3], [3]]);
}

describe('a native exception becomes a TorchError with a code', () => {
  it.each(faults)('%s from %s', (code, op, ...args) => {
    const run = (): unknown => call(op, ...args);
    expect(run).toThrow(TorchError);
    try {
      run();
    } catch (error) {
      const fault = error as TorchError;
      expect([fault.code, fault.name]).toEqual([code, 'TorchError']);
      // Neither a C++ backtrace nor source locations, and short enough to read.
      expect(fault.message).not.toMatch(/frame #|Exception raised from|\.cpp:|\.so/);
      expect(fault.message.length).toBeLessThan(400);
    }
  });

  it.each(faults)('%s from %s, off the event loop as well', async (code, op, ...args) => {
    await expect(callAsync(op, ...args)).rejects.toMatchObject({ name: 'TorchError', code });
  });

  it('with a JavaScript stack that leads to the caller', () => {
    const error = catchError(() => call('aten::mm', a, a)) as TorchError;
    expect(error.stack).toContain('bridge/errors.test');
  });

  it('1000 times: shapes, types and a petabyte, and the process still computes right', async () => {
    const codes = new Set<string>();
    const note = (error: unknown): void => {
      codes.add((error as TorchError).code);
    };
    for (let round = 0; round < 1000; round++) {
      note(catchError(() => call('aten::mm', a, a)));
      note(catchError(() => call('aten::empty.memory_format', [2 ** 50 / 4])));
      note(catchError(() => call('aten::mm', a, 'x')));
    }
    expect([...codes].sort()).toEqual(['ERR_ARGUMENT', 'ERR_OUT_OF_MEMORY', 'ERR_SHAPE']);
    stillComputes();
    codes.clear();
    for (let round = 0; round < 1000; round++) {
      await callAsync('aten::mm', a, a).catch(note);
      await callAsync('aten::empty.memory_format', [2 ** 50 / 4]).catch(note);
      await callAsync('aten::mm', a, 'x').catch(note);
    }
    expect([...codes].sort()).toEqual(['ERR_ARGUMENT', 'ERR_OUT_OF_MEMORY', 'ERR_SHAPE']);
    stillComputes();
  });

  it('1000 times at once off the event loop: each job fails or succeeds on its own', async () => {
    const jobs = Array.from({ length: 1000 }, (_job, index) =>
      callAsync('aten::mm', a, index % 2 === 0 ? a : ones([3, 1])),
    );
    const settled = await Promise.allSettled(jobs);
    settled.forEach((job, index) =>
      expect(job.status).toBe(index % 2 === 0 ? 'rejected' : 'fulfilled'),
    );
    stillComputes();
  });
});

describe('the typed API', () => {
  it('lets faults of the machine through as TorchError', () => {
    const error = catchError(() => empty([2 ** 50])) as TorchError;
    expect([error.name, error.code]).toEqual(['TorchError', 'ERR_OUT_OF_MEMORY']);
    stillComputes();
  });

  it('changes nothing when an in-place op is refused', () => {
    const x = zeros([2]);
    catchError(() => x.add_(ones([3])));
    catchError(() => callTensor('aten::add_.Tensor', x, ones([3])));
    expect(x.toArray()).toEqual([0, 0]);
  });

  it('refuses a Tensor that `new` made', () => {
    const empty = new (Tensor as unknown as new () => Tensor)();
    expect((catchError(() => empty.shape) as TorchError).code).toBe('ERR_ARGUMENT');
    expect((catchError(() => empty.add(1)) as TorchError).code).toBe('ERR_ARGUMENT');
  });
});

function catchError(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}
