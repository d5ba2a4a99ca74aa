/** Wrong arguments with tensors on a GPU: an error each, and the GPU goes on working. */
import { afterEach, describe, expect, it } from 'vitest';
import {
  cat,
  crossEntropy,
  cuda,
  Embedding,
  Linear,
  ones,
  tensor,
  type TorchError,
  zeros,
  type Tensor,
} from 'torchformer';
import { runScript } from '../process/support.js';

const x = ones([3, 3], { device: 'cuda' });
const at = (...positions: number[]): Tensor =>
  tensor(positions, { dtype: 'int64', device: 'cuda' });

// The kernel that finds a fault runs later: without this a later test would be told.
afterEach(() => {
  cuda.synchronize();
  expect(zeros([2], { device: 'cuda' }).add(1).toArray()).toEqual([1, 1]);
});

function faultOf(run: () => unknown): TorchError {
  try {
    run();
  } catch (error) {
    return error as TorchError;
  }
  throw new Error('nothing was thrown');
}

describe('tensors on CPU and GPU', () => {
  it('in one op are ERR_DEVICE with the arguments’ names', () => {
    for (const run of [
      () => x.add(ones([3])),
      () => x.matmul(ones([3, 3])),
      () => cat([x, ones([3, 3])]),
    ]) {
      const { code, message } = faultOf(run);
      expect(code).toBe('ERR_DEVICE');
      expect(message).toMatch(/cuda:0/);
      expect(message).toMatch(/cpu/);
    }
    expect(faultOf(() => x.add(ones([3]))).message).toContain('self is on cuda:0, other is on cpu');
  });

  it('of a module and its input are ERR_DEVICE too', () => {
    const { code, message } = faultOf(() => new Linear(3, 3).to('cuda').forward(ones([1, 3])));
    expect(code).toBe('ERR_DEVICE');
    expect(message).toContain('Linear: input is on cpu but the weights are on cuda:0');
  });

  it('but a single number may be on the CPU, as in PyTorch', () => {
    expect(x.add(tensor(1)).sum().item()).toBe(18);
  });
});

describe('ids and positions outside', () => {
  it('of a table are refused before the kernel', () => {
    const embedding = new Embedding(5, 2).to('cuda');
    expect(() => embedding.forward(at(1, 5))).toThrow('holds the id 5 at [1]');
    expect(() => embedding.forward(at(-1))).toThrow(RangeError);
  });

  it('of the classes of a loss are refused before the kernel', () => {
    expect(() => crossEntropy(x, at(0, 1, 3))).toThrow(RangeError);
  });

  it('of methods that take positions are refused before the kernel', () => {
    const index = at(3).reshape([1, 1]);
    const calls: (() => Tensor)[] = [
      () => x.gather(0, index),
      () => x.indexSelect(0, at(3)),
      () => x.take(at(9)),
      () => x.takeAlongDim(index, 0),
      () => x.index(at(3)),
      () => x.indexPut_([at(-4)], 0),
      () => x.scatter(0, index, 1),
      () => x.scatterAdd(0, index, ones([1, 1], { device: 'cuda' })),
      () => x.indexFill(0, at(3), 0),
      () => x.indexAdd(0, at(-1), ones([1, 3], { device: 'cuda' })),
      () => x.indexCopy(0, at(-1), ones([1, 3], { device: 'cuda' })),
    ];
    for (const run of calls) expect(run).toThrow(RangeError);
  });
});

describe('a lost context', () => {
  it('is ERR_CUDA_LOST, and the CPU goes on', () => {
    // Not in this process, which has other tests to do.
    const { status, output, errors } = runScript(`
      import { cuda, ones, ops, tensor } from './dist/index.js';
      const codes = [];
      const attempt = (run) => { try { run(); } catch ({ code }) { codes.push(code); } };
      attempt(() => ops.aten.index_select(ones([2]).cuda(), 0, tensor([9n]).cuda()).sum().item());
      attempt(() => cuda.synchronize());
      console.log(JSON.stringify([codes, ones([2]).add(1).toArray()]));
    `);
    expect(status, errors).toBe(0);
    expect(JSON.parse(output)).toEqual([
      ['ERR_CUDA_LOST', 'ERR_CUDA_LOST'],
      [2, 2],
    ]);
  });
});
