import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { callAsync, keep, memory, Scope, tensor, tidy, zeros, type Tensor } from 'torchformer';

describe('tidy', () => {
  it('disposes of everything made inside but what it returns', () => {
    const before = memory().tensors;
    let inner: Tensor | undefined;
    const result = tidy(() => {
      inner = tensor([1, 2]);
      return inner.mul(2).add(1);
    });
    expect([inner?.isDisposed, result.toArray(), memory().tensors]).toEqual([
      true,
      [3, 5],
      before + 1,
    ]);
    result.dispose();
    expect(memory().tensors).toBe(before);
  });

  it('finds what it returns in arrays, objects, maps and sets, also in cycles', () => {
    const before = memory().tensors;
    const result = tidy(() => {
      const kept: Record<string, unknown> = {
        list: [zeros([1]), { deep: zeros([1]) }],
        map: new Map([['a', zeros([1])]]),
        set: new Set([zeros([1])]),
      };
      kept['self'] = kept;
      zeros([1]);
      return kept;
    });
    expect(memory().tensors).toBe(before + 4);
    const scope = new Scope();
    scope.adopt(result);
    scope.dispose();
    expect(memory().tensors).toBe(before);
  });

  it('hands its result to the scope around it', () => {
    const before = memory().tensors;
    tidy(() => {
      const inner = tidy(() => zeros([1]).add(1));
      expect(inner.item()).toBe(1);
    });
    expect(memory().tensors).toBe(before);
  });

  it('leaves tensors from outside alone', () => {
    const outside = zeros([1]);
    tidy(() => outside.add_(1));
    expect(outside.item()).toBe(1);
  });

  it('disposes when fn throws', () => {
    const before = memory().tensors;
    expect(() =>
      tidy(() => {
        zeros([1]);
        throw new Error('inside');
      }),
    ).toThrow('inside');
    expect(memory().tensors).toBe(before);
  });

  it('refuses a function that returns a Promise', () => {
    const before = memory().tensors;
    expect(() => tidy(async () => zeros([1]))).toThrow(TypeError);
    expect(() => tidy(() => Promise.reject(new Error('unheard')))).toThrow(/returned a Promise/);
    expect(memory().tensors).toBe(before);
  });
});

describe('keep', () => {
  it('lets a tensor outlive all scopes', () => {
    let kept: Tensor | undefined;
    tidy(() => {
      tidy(() => {
        kept = keep(tensor([5]));
      });
    });
    expect(kept?.item()).toBe(5);
    kept?.dispose();
  });
});

describe('Scope', () => {
  it('lasts across awaits and adopts the results of native jobs', async () => {
    const scope = new Scope();
    const made = await scope.run(async () => {
      const x = zeros([2]);
      await setImmediate();
      const y = (await callAsync('aten::add.Scalar', x, 1)) as Tensor;
      const z = y.mul(2);
      expect(z.toArray()).toEqual([2, 2]);
      return [x, y, z];
    });
    expect(made.map((tensor) => tensor.isDisposed)).toEqual([false, false, false]);
    scope.dispose();
    expect(made.map((tensor) => tensor.isDisposed)).toEqual([true, true, true]);
  });

  it('of one piece of async work does not touch the tensors of another', async () => {
    const made: Tensor[] = [];
    const work = async (value: number, turns: number): Promise<number> => {
      const scope = new Scope();
      try {
        return await scope.run(async () => {
          const x = tensor([value]);
          for (let turn = 0; turn < turns; turn++) await setImmediate();
          const y = x.mul(2);
          made.push(x, y);
          return y.item();
        });
      } finally {
        scope.dispose();
      }
    };
    // The first to end disposes while the others are still at work.
    expect(await Promise.all([work(1, 1), work(2, 2), work(3, 5)])).toEqual([2, 4, 6]);
    expect(made.every((tensor) => tensor.isDisposed)).toBe(true);
  });

  it('may be disposed of twice, and refuses to run afterwards', () => {
    const scope = new Scope();
    scope.dispose();
    scope.dispose();
    expect(() => scope.run(() => 1)).toThrow(/disposed/);
  });

  it('forgets tensors that are disposed of inside', () => {
    const scope = new Scope();
    scope.run(() => {
      const x = zeros([1]);
      x.dispose();
      expect(x.isDisposed).toBe(true);
    });
    scope.dispose();
  });
});

describe('memory', () => {
  it('counts tensors, and each storage once', () => {
    tidy(() => {
      const before = memory();
      const x = zeros([1024], { dtype: 'float32' });
      const views = [x.reshape(32, 32), x.detach(), x.narrow(0, 0, 10)];
      const after = memory();
      expect(after.tensors - before.tensors).toBe(1 + views.length);
      expect(after.bytes - before.bytes).toBe(4096);
      x.dispose();
      expect(memory().bytes - before.bytes).toBe(4096);
      for (const view of views) view.dispose();
      expect(memory()).toMatchObject({ tensors: before.tensors, bytes: before.bytes });
    });
  });

  it('shows in nativeBytes what only the autograd graph still holds', () => {
    tidy(() => {
      const x = zeros([256, 256], { requiresGrad: true });
      const before = memory();
      const y = x.exp().sum();
      const saved = 256 * 256 * 4;
      expect(memory().nativeBytes - before.nativeBytes).toBeGreaterThanOrEqual(saved);
      y.dispose();
    });
  });

  it('is not touched by reading values', () => {
    const x = tensor([1, 2], { dtype: 'float16', requiresGrad: true });
    const before = memory();
    x.toArray();
    x.data();
    x.bytes();
    x.toString();
    expect(memory()).toEqual(before);
  });
});
