/** Tensors of two devices in one call. `meta`, which has no memory, is a second device everywhere. */
import { describe, expect, it } from 'vitest';
import {
  call,
  callAsync,
  callTensor,
  Embedding,
  Linear,
  ones,
  ops,
  TorchError,
  type Tensor,
} from 'torchformer';

const there = (shape: readonly number[], dtype = 'float32'): Tensor =>
  callTensor('aten::empty.memory_format', shape, { device: 'meta', dtype });

function faultOf(run: () => unknown): TorchError {
  try {
    run();
  } catch (error) {
    if (error instanceof TorchError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('tensors on two devices are ERR_DEVICE', () => {
  it('naming each argument with its device, and a way out', () => {
    const { code, message } = faultOf(() => ones([2]).add(there([2])));
    expect(code).toBe('ERR_DEVICE');
    expect(message).toBe(
      'aten::add.Tensor: all tensors must be on one device, but self is on cpu, other is on meta; ' +
        "move one: other.to({ device: 'cpu' })",
    );
  });

  it('also of raw ops, and of arguments given by name', () => {
    const { message } = faultOf(() => ops.aten.mul(ones([2]), there([2])));
    expect(message).toContain('self is on cpu, other is on meta');
    const named = faultOf(() => call('aten::add.Tensor', ones([2]), { other: there([2]) }));
    expect(named.message).toContain('self is on cpu, other is on meta');
  });

  it('also off the event loop', async () => {
    await expect(callAsync('aten::add.Tensor', ones([2]), there([2]))).rejects.toMatchObject({
      code: 'ERR_DEVICE',
      message: expect.stringContaining('other is on meta') as string,
    });
  });

  it('with libtorch’s own error as the cause', () => {
    const { cause } = faultOf(() => ones([2]).add(there([2])));
    expect((cause as TorchError).message).toContain('at least two devices');
  });

  it('at the door of a module, which names its parameter', () => {
    const linear = faultOf(() => new Linear(2, 2).forward(there([1, 2])));
    expect([linear.code, linear.message]).toEqual([
      'ERR_DEVICE',
      "Linear: input is on meta but the weights are on cpu; move one: input.to({ device: 'cpu' }) " +
        "or module.to({ device: 'meta' })",
    ]);
    const embedding = faultOf(() => new Embedding(3, 2).forward(there([1], 'int64')));
    expect(embedding.code).toBe('ERR_DEVICE');
    expect(embedding.message).toContain('Embedding: ids is on meta but the weights are on cpu');
  });

  it('and nothing else is taken for it', () => {
    expect(() => ones([2]).add(ones([3]))).toThrow(RangeError);
  });
});
