import { describe, expect, it } from 'vitest';
import { ones, profile } from 'torchformer';

describe('profile', () => {
  it('counts every op once a call, backward passes on other threads too', async () => {
    const x = ones([3]).requiresGrad_();
    const { result, times } = await profile(async () => {
      const y = x.mul(2).mul(3).sum();
      await y.backwardAsync();
      return y.item();
    });
    expect(result).toBe(18);
    const calls = Object.fromEntries(times.map(({ op, calls }) => [op, calls]));
    expect(calls['aten::sum']).toBe(1);
    expect(calls['aten::mul']).toBeGreaterThanOrEqual(2 + 2);
    expect(Object.keys(calls).some((op) => op.includes('MulBackward'))).toBe(true);
    for (const { milliseconds } of times) expect(milliseconds).toBeGreaterThanOrEqual(0);
  });

  it('has ended after an error, and runs one at a time', async () => {
    const failing = profile(() => {
      throw new Error('mine');
    });
    await expect(failing).rejects.toThrow('mine');
    await profile(async () => {
      await expect(profile(() => 1)).rejects.toThrow(/running already/);
    });
    expect((await profile(() => 1)).result).toBe(1);
  });
});
