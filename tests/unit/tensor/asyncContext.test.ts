import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from 'vitest';
import {
  callAsync,
  defineFunction,
  keep,
  memory,
  ones,
  Scope,
  tensor,
  type Tensor,
} from 'torchformer';

const numbers = () => tensor([1, 2], { requiresGrad: true });

/** A promise and what settles it. */
function gate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

describe('what comes of native work belongs to the call that asked for it', () => {
  it('a result, to the scope of its own call, whichever scope made the first call', async () => {
    const [first, second] = [new Scope(), new Scope()];
    const { opened, open } = gate();
    const one = first.run(async () => {
      await callAsync('aten::neg', ones([2]));
    });
    const other = second.run(async () => {
      const result = (await callAsync('aten::neg', ones([2]))) as Tensor;
      await opened;
      return result.toArray();
    });
    await one;
    first.dispose();
    open();
    expect(await other).toEqual([-1, -1]);
    const before = memory().tensors;
    second.dispose();
    // The argument and the result.
    expect(memory().tensors).toBe(before - 2);
  });

  it('each of many results, in calls of several scopes one after the other', async () => {
    const before = memory().tensors;
    const scopes = Array.from({ length: 5 }, () => new Scope());
    const results = scopes.map((scope, index) =>
      scope.run(() => callAsync('aten::full', [3], index) as Promise<Tensor>),
    );
    const made = await Promise.all(results);
    for (const [index, scope] of scopes.entries()) {
      scope.dispose();
      expect(made.map((result) => result.isDisposed)).toEqual(made.map((_, at) => at <= index));
    }
    expect(memory().tensors).toBe(before);
  });

  it('nothing, where the result is the argument: it stays where it was', async () => {
    const outside = ones([2]);
    const scope = new Scope();
    await scope.run(() => callAsync('aten::add_.Scalar', outside, 1));
    scope.dispose();
    expect(outside.toArray()).toEqual([2, 2]);
    outside.dispose();
  });

  it('a gradient hook, to the backward pass that calls it', async () => {
    const requests = new AsyncLocalStorage<string>();
    const seen: [string, string | undefined][] = [];
    const pass = (name: string) => {
      const x = numbers();
      x.registerHook(() => void seen.push([name, requests.getStore()]));
      return requests.run(name, () => x.mul(x).sum().backwardAsync());
    };
    await Promise.all([pass('one'), pass('two'), pass('three')]);
    expect(seen).toEqual([
      ['one', 'one'],
      ['two', 'two'],
      ['three', 'three'],
    ]);
  });

  it('what a backward of JavaScript keeps in the scope around its pass', async () => {
    const kept: Tensor[] = [];
    const double = defineFunction({
      forward: (_, x: Tensor) => x.mul(2),
      backward: (_, gradient) => {
        // Adopted by the scope of the pass, not by one that is gone.
        kept.push(keep(gradient!.mul(1)));
        return gradient!.mul(2);
      },
    });
    const scopes = [new Scope(), new Scope()];
    const [one, other] = scopes.map((scope) =>
      scope.run(async () => {
        const x = numbers();
        await double(x).sum().backwardAsync();
        return x;
      }),
    );
    await one;
    scopes[0]!.dispose();
    expect((await other!).grad?.toArray()).toEqual([2, 2]);
    scopes[1]!.dispose();
    expect(kept.map((tensor) => tensor.toArray())).toEqual([
      [1, 1],
      [1, 1],
    ]);
    kept.forEach((tensor) => tensor.dispose());
  });

  it('a failure, and the work after it', async () => {
    const requests = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const work = (name: string, op: string) =>
      requests.run(name, async () => {
        try {
          await callAsync(op, ones([2, 3]), ones([2, 3]));
        } catch (error) {
          seen.push([requests.getStore(), (error as Error).name]);
          return;
        }
        seen.push([requests.getStore(), 'fine']);
      });
    await Promise.all([work('one', 'aten::mm'), work('two', 'aten::mul.Tensor')]);
    expect(seen).toEqual([
      ['one', 'TorchError'],
      ['two', 'fine'],
    ]);
  });
});
