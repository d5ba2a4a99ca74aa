import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  callAsync,
  enableGrad,
  isGradEnabled,
  manualSeed,
  noGrad,
  ones,
  tensor,
  TorchError,
  zeros,
  type Tensor,
} from 'torchformer';

describe('callAsync', () => {
  it('computes what the op computes, off the event loop', async () => {
    let turned = false;
    const turn = setImmediate().then(() => (turned = true));
    const product = (await callAsync('aten::mm', ones([64, 64]), ones([64, 64]))) as Tensor;
    expect(turned).toBe(true);
    await turn;
    expect(product.select(0, 0).select(0, 0).item()).toBe(64);
  });

  it('runs jobs in the order of the calls', async () => {
    const x = zeros([1]);
    const jobs: Promise<unknown>[] = [];
    // (((0 + 1) · 2 + 1) · 2 + …): any other order gives another number.
    for (let round = 0; round < 20; round++) {
      jobs.push(callAsync('aten::add_.Scalar', x, 1), callAsync('aten::mul_.Scalar', x, 2));
    }
    await Promise.all(jobs);
    expect(x.item()).toBe(2 ** 21 - 2);
  });

  it('holds on to its arguments: they may be disposed of at once', async () => {
    const x = tensor([1, 2]);
    const job = callAsync('aten::neg', x);
    x.dispose();
    expect(((await job) as Tensor).toArray()).toEqual([-1, -2]);
  });

  it('takes the grad mode of the call along, whatever the mode is later', async () => {
    const x = ones([2], { requiresGrad: true });
    const [off] = noGrad(() => [callAsync('aten::neg', x)]) as [Promise<Tensor>];
    const on = callAsync('aten::neg', x) as Promise<Tensor>;
    const [nested] = noGrad(() => enableGrad(() => [callAsync('aten::neg', x)])) as [
      Promise<Tensor>,
    ];
    expect((await off).requiresGrad).toBe(false);
    expect((await on).requiresGrad).toBe(true);
    expect((await nested).requiresGrad).toBe(true);
    expect(isGradEnabled()).toBe(true);
  });

  it('records a graph that backward can follow', async () => {
    const x = tensor([1, 2], { requiresGrad: true });
    const y = (await callAsync('aten::mul.Tensor', x, x)) as Tensor;
    await y.sum().backwardAsync();
    expect(x.grad?.toArray()).toEqual([2, 4]);
  });

  it('draws from the same generator as calls on this thread', async () => {
    manualSeed(5);
    const sync = [ones([4]).uniform_().toArray(), ones([4]).uniform_().toArray()];
    manualSeed(5);
    const first = (await callAsync('aten::uniform_', ones([4]))) as Tensor;
    expect([first.toArray(), ones([4]).uniform_().toArray()]).toEqual(sync);
  });

  it('rejects with a TorchError for faults in arguments, and never throws', async () => {
    const job = callAsync('aten::mm', 'x');
    await expect(job).rejects.toBeInstanceOf(TorchError);
    await expect(callAsync('aten::mm', 'x')).rejects.toMatchObject({ code: 'ERR_ARGUMENT' });
    await expect(callAsync('nothing::here')).rejects.toMatchObject({ code: 'ERR_UNKNOWN_OP' });
    const gone = zeros([1]);
    gone.dispose();
    await expect(callAsync('aten::neg', gone)).rejects.toMatchObject({ code: 'ERR_DISPOSED' });
  });
});
