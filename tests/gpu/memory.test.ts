/** What the figures of a GPU's memory tell, and what happens when there is not enough. */
import { beforeEach, describe, expect, it } from 'vitest';
import { cuda, empty, memory, ones, TorchError, zeros } from 'torchformer';

const megabytes = 2 ** 20;

beforeEach(() => {
  cuda.emptyCache();
  cuda.resetPeakMemory();
});

describe('the figures', () => {
  it('rise with a tensor and fall when it goes', () => {
    const before = cuda.memory();
    const x = empty([64 * megabytes], { dtype: 'uint8', device: 'cuda' });
    const during = cuda.memory();
    expect(during.allocated - before.allocated).toBe(64 * megabytes);
    expect(during.reserved - before.reserved).toBeGreaterThanOrEqual(64 * megabytes);
    x.dispose();
    expect(cuda.memory().allocated).toBe(before.allocated);
  });

  it('keep the peak until it is reset', () => {
    const { allocated } = cuda.memory();
    empty([64 * megabytes], { dtype: 'uint8', device: 'cuda' }).dispose();
    expect(cuda.memory().peakAllocated).toBe(allocated + 64 * megabytes);
    expect(cuda.memory().allocated).toBe(allocated);
    cuda.resetPeakMemory();
    expect(cuda.memory().peakAllocated).toBe(allocated);
  });

  it('keep what is freed reserved until emptyCache()', () => {
    const before = cuda.memory();
    empty([256 * megabytes], { dtype: 'uint8', device: 'cuda' }).dispose();
    expect(cuda.memory().reserved).toBeGreaterThanOrEqual(before.reserved + 256 * megabytes);
    cuda.emptyCache();
    expect(cuda.memory().reserved).toBe(before.reserved);
  });

  it('of the CPU do not count what is on the GPU as native memory of the process', () => {
    const before = memory();
    const x = empty([64 * megabytes], { dtype: 'uint8', device: 'cuda' });
    const during = memory();
    expect(during.tensors - before.tensors).toBe(1);
    expect(during.nativeBytes - before.nativeBytes).toBeLessThan(megabytes);
    x.dispose();
  });
});

describe('too much', () => {
  const wanted = 2 ** 50;

  function outOfMemory(): TorchError {
    try {
      empty([wanted], { dtype: 'uint8', device: 'cuda' });
    } catch (error) {
      return error as TorchError;
    }
    throw new Error('a petabyte was there');
  }

  it('is ERR_OUT_OF_MEMORY with what was asked, what is free, and a way out', () => {
    const { name, code, message } = outOfMemory();
    expect([name, code]).toEqual(['TorchError', 'ERR_OUT_OF_MEMORY']);
    expect(message).toMatch(
      /^cuda:0 is out of memory: [\d.]+ GiB were asked for, [\d.]+ [GM]iB of [\d.]+ GiB are free\. /,
    );
    expect(message).toContain('Use a smaller batch');
    expect(message).not.toContain('PYTORCH');
  });

  it('leaves the process and the GPU at work: a smaller tensor succeeds', () => {
    const before = cuda.memory().allocated;
    for (let round = 0; round < 10; round++) outOfMemory();
    expect(cuda.memory().allocated).toBe(before);
    expect(zeros([1000], { device: 'cuda' }).add(1).sum().item()).toBe(1000);
  });

  it('in the middle of a computation leaves its operands as they were', () => {
    const x = ones([1, 1 << 21], { device: 'cuda' });
    const y = ones([1 << 21, 1], { device: 'cuda' });
    expect(() => y.matmul(x)).toThrow(TorchError);
    expect([x.sum().item(), y.sum().item()]).toEqual([1 << 21, 1 << 21]);
  });
});
