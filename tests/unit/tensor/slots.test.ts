import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { call, callAsync, memory, Tensor, tensor, zeros } from 'torchformer';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Lets the collector run until `done` or its patience ends. */
async function collectUntil(done: () => boolean): Promise<void> {
  for (let turn = 0; turn < 20 && !done(); turn++) {
    await setImmediate();
    collectGarbage();
  }
}

function codeOf(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return (error as { code?: unknown }).code;
  }
  return 'no error';
}

describe('an object that native code did not make', () => {
  const real = tensor([1, 2]);
  class Derived extends (Tensor as unknown as new () => Tensor) {}
  const forgeries: [string, unknown][] = [
    ['new Tensor()', new (Tensor as unknown as new (slot?: number) => Tensor)(1)],
    ['an instance of a class derived from Tensor', new Derived()],
    ['Object.create(Tensor.prototype)', Object.create(Tensor.prototype)],
    ['an object with all properties of a tensor', Object.assign({}, real)],
    ['a tensor as prototype', Object.create(real)],
    ['a Proxy of a tensor', new Proxy(real, {})],
    ['the number of a slot', 1],
  ];

  it.each(forgeries)('is refused as a tensor by ops: %s', (_, forgery) => {
    expect(codeOf(() => call('aten::add.Tensor', real, forgery))).toBe('ERR_ARGUMENT');
    expect(codeOf(() => call('aten::cat', [real, forgery]))).toBe('ERR_ARGUMENT');
    expect(codeOf(() => call('aten::sum', real, { self: forgery }))).toBe('ERR_ARGUMENT');
  });

  it.each(forgeries)('is refused by ops off the event loop: %s', async (_, forgery) => {
    await expect(callAsync('aten::add.Tensor', real, forgery)).rejects.toMatchObject({
      code: 'ERR_ARGUMENT',
    });
  });

  it('has no memory to give back', () => {
    const before = memory().tensors;
    const shell = new Derived();
    expect(shell.isDisposed).toBe(true);
    shell.dispose();
    expect([memory().tensors, real.toArray()]).toEqual([before, [1, 2]]);
  });
});

describe('a disposed tensor', () => {
  it('stays disposed, and leaves alone the tensor that has its place', () => {
    const gone = tensor([1]);
    gone.dispose();
    const next = tensor([2]);
    const before = memory().tensors;
    gone.dispose();
    expect([gone.isDisposed, next.item(), memory().tensors]).toEqual([true, 2, before]);
    expect(codeOf(() => gone.add(next))).toBe('ERR_DISPOSED');
    expect(codeOf(() => gone.shape)).toBe('ERR_DISPOSED');
  });

  it('leaves that tensor alone when it is collected', async () => {
    const make = async (): Promise<WeakRef<Tensor>> => {
      const gone = tensor([1]);
      // From the next turn of the event loop on, the collector watches it.
      await setImmediate();
      await setImmediate();
      gone.dispose();
      return new WeakRef(gone);
    };
    const gone = await make();
    const next = tensor([2]);
    await collectUntil(() => gone.deref() === undefined);
    await setImmediate();
    expect([gone.deref(), next.isDisposed, next.item()]).toEqual([undefined, false, 2]);
  });
});

describe('a tensor that nobody holds', () => {
  const count = 3000;

  it('is freed by the collector, be it made in a long loop or at its end', async () => {
    const before = memory();
    for (let i = 0; i < count; i++) zeros([1000]);
    expect(memory().tensors).toBe(before.tensors + count);
    await collectUntil(() => memory().tensors <= before.tensors);
    expect(memory().tensors).toBeLessThanOrEqual(before.tensors);
    expect(memory().bytes).toBeLessThanOrEqual(before.bytes);
  });

  it('is freed when an op off the event loop made it', async () => {
    const ones = tensor([1, 1]);
    const before = memory().tensors;
    for (let i = 0; i < 10; i++) await callAsync('aten::add.Tensor', ones, ones);
    await collectUntil(() => memory().tensors <= before);
    expect([memory().tensors, ones.toArray()]).toEqual([before, [1, 1]]);
  });

  it('lives as long as somebody holds it', async () => {
    const held = Array.from({ length: count }, (_, value) => tensor([value]));
    await collectUntil(() => false);
    expect(held.every((item, value) => item.item() === value)).toBe(true);
    held.forEach((item) => item.dispose());
  });
});

describe('an op with tensors, numbers, booleans and null', () => {
  const x = tensor([1, -2, 3]);

  it('takes numbers as the schema says, and never rounds an integer', () => {
    expect((call('aten::sum.dim_IntList', x, [0], true) as Tensor).shape).toEqual([1]);
    expect((call('aten::softplus', x, 1, 20) as Tensor).shape).toEqual([3]);
    expect((call('aten::cumsum', x, 0) as Tensor).toArray()).toEqual([1, -1, 2]);
    expect(codeOf(() => call('aten::cumsum', x, 0.5))).toBe('ERR_ARGUMENT');
    expect(codeOf(() => call('aten::cumsum', x, NaN))).toBe('ERR_ARGUMENT');
    expect(codeOf(() => call('aten::cumsum', x, 2 ** 53))).toBe('ERR_ARGUMENT');
    expect(codeOf(() => call('aten::cumsum', x, true))).toBe('ERR_ARGUMENT');
  });

  it('keeps integer tensors integer with an integer, and minus zero floating', () => {
    const integers = tensor([1, 2], { dtype: 'int64' });
    expect((call('aten::mul.Scalar', integers, 2) as Tensor).dtype).toBe('int64');
    expect((call('aten::mul.Scalar', integers, 2.5) as Tensor).dtype).toBe('float32');
    expect((call('aten::mul.Scalar', integers, -0) as Tensor).dtype).toBe('float32');
    expect((call('aten::mul.Scalar', integers, true) as Tensor).dtype).toBe('int64');
  });

  it('takes null and undefined where the schema has an optional argument or a default', () => {
    const clamped = (...bounds: unknown[]) =>
      (call('aten::clamp', x, ...bounds) as Tensor).toArray();
    expect(clamped(0, null)).toEqual([1, 0, 3]);
    expect(clamped(null, 2)).toEqual([1, -2, 2]);
    expect(clamped(undefined, 2)).toEqual([1, -2, 2]);
    expect(clamped(0, undefined)).toEqual([1, 0, 3]);
    expect(codeOf(() => call('aten::add.Tensor', x, null))).toBe('ERR_ARGUMENT');
    expect(codeOf(() => call('aten::add.Tensor', undefined, x))).toBe('ERR_ARGUMENT');
    expect(codeOf(() => call('aten::add.Tensor', x, x, 1))).toBe('ERR_ARGUMENT');
  });

  it('gives back the very object that it changed in place', () => {
    const changed = zeros([3]);
    expect(call('aten::add_.Tensor', changed, x)).toBe(changed);
    expect(call('aten::mul_.Scalar', changed, 2)).toBe(changed);
    expect(changed.toArray()).toEqual([2, -4, 6]);
  });

  it('is unharmed by a call that was refused before it', () => {
    expect(codeOf(() => call('aten::add.Tensor', x, 'x'))).toBe('ERR_ARGUMENT');
    expect(codeOf(() => call('aten::add.Tensor', x, zeros([2])))).toBe('ERR_SHAPE');
    expect((call('aten::add.Tensor', x, x) as Tensor).toArray()).toEqual([2, -4, 6]);
  });
});
