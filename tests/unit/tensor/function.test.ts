import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import {
  defineFunction,
  enableGrad,
  grad,
  keep,
  memory,
  noGrad,
  ones,
  tensor,
  tidy,
  type Tensor,
} from 'torchformer';
import { root } from '../../process/support.js';

const cube = defineFunction({
  name: 'Cube',
  forward(context, x: Tensor) {
    context.save(x);
    return x.pow(3);
  },
  backward({ saved: [x] }, gradient) {
    return (gradient as Tensor).mul((x as Tensor).pow(2)).mul(3);
  },
});

describe('defineFunction', () => {
  it('uses the backward that it is given: d x³ = 3 x²', () => {
    const x = tensor([1, 2, -3], { requiresGrad: true });
    const y = cube(x);
    expect(y.toArray()).toEqual([1, 8, -27]);
    expect(y.gradFn).toBe('Cube');
    y.sum().backward();
    expect(x.grad?.toArray()).toEqual([3, 12, 27]);
  });

  it('runs the backward of an async pass too', async () => {
    const x = tensor([2], { requiresGrad: true });
    await cube(cube(x)).sum().backwardAsync();
    // d x⁹ = 9 x⁸
    expect(x.grad?.toArray()).toEqual([9 * 256]);
  });

  it('is differentiated twice with createGraph: d² x³ = 6 x', () => {
    const x = tensor([2, 5], { dtype: 'float64', requiresGrad: true });
    const [first] = grad([cube(x).sum()], [x], { createGraph: true });
    const [second] = grad([(first as Tensor).sum()], [x]);
    expect(second?.toArray()).toEqual([12, 30]);
  });

  it('takes several arguments, tensors or not, and gives several outputs', () => {
    const sumAndProduct = defineFunction({
      forward(context, a: Tensor, b: Tensor, factor: number) {
        context.save(a, b);
        context.state['factor'] = factor;
        expect(context.needsGradient).toEqual([true, false, false]);
        return [a.add(b), a.mul(b).mul(factor)] as const;
      },
      backward({ saved: [, b], state }, ofSum, ofProduct) {
        expect(ofSum).toBeNull();
        return [(ofProduct as Tensor).mul(b as Tensor).mul(state['factor'] as number), null, null];
      },
    });
    const a = tensor([1, 2], { requiresGrad: true });
    const [, product] = sumAndProduct(a, tensor([3, 4]), 10);
    expect(product.toArray()).toEqual([30, 80]);
    product.sum().backward();
    expect(a.grad?.toArray()).toEqual([30, 40]);
  });

  it('records nothing without a need', () => {
    expect(cube(tensor([2])).requiresGrad).toBe(false);
    const x = tensor([2], { requiresGrad: true });
    expect(noGrad(() => cube(x)).requiresGrad).toBe(false);
    expect(noGrad(() => enableGrad(() => cube(x))).requiresGrad).toBe(true);
  });

  it('keeps what it saved beyond a scope, and frees it with the graph', () => {
    const x = keep(tensor([2], { requiresGrad: true }));
    const before = memory().tensors;
    tidy(() => {
      const y = tidy(() => cube(x.mul(1)).sum());
      y.backward();
    });
    expect(x.grad?.toArray()).toEqual([12]);
    x.grad?.dispose();
    tidy(() => void ones([1]));
    expect(memory().tensors).toBe(before);
  });

  it('refuses a second backward without retainGraph', () => {
    const x = tensor([2], { requiresGrad: true });
    const y = cube(x).sum();
    y.backward({ retainGraph: true });
    y.backward();
    expect(x.grad?.toArray()).toEqual([24]);
    expect(() => y.backward()).toThrow(/second time/);
  });

  it('gives back what backward throws, sync and async', async () => {
    const fault = new RangeError('mine');
    const failing = defineFunction({
      forward: (_context, x: Tensor) => x.mul(2),
      backward() {
        throw fault;
      },
    });
    const x = tensor([1], { requiresGrad: true });
    expect(() => failing(x).sum().backward()).toThrow(fault);
    await expect(failing(x).sum().backwardAsync()).rejects.toBe(fault);
    expect(cube(x).sum().item()).toBe(1);
  });

  it('names a wrong number or shape of gradients', () => {
    const wrong = (results: (x: Tensor) => Tensor | readonly Tensor[]) => {
      const x = tensor([1, 2], { requiresGrad: true });
      const bad = defineFunction({
        name: 'Bad',
        forward: (_context, input: Tensor) => input.mul(2),
        backward: (_context, gradient) => results(gradient as Tensor),
      });
      return () => bad(x).sum().backward();
    };
    expect(wrong((gradient) => [gradient, gradient])).toThrow(
      /Bad: backward must return a gradient for each of the 1/,
    );
    expect(wrong((gradient) => gradient.sum())).toThrow(
      /gradient 0 has shape \[\], but its argument has \[2\]/,
    );
  });

  it('refuses a saved tensor that was written to since, as the ops do', () => {
    const x = tensor([1, 2], { requiresGrad: true });
    const input = x.mul(1);
    const y = cube(input).sum();
    noGrad(() => input.mul_(100));
    expect(() => y.backward()).toThrow(/Cube: saved tensor 0 was modified by an in-place/);
    expect(x.grad).toBeNull();
  });

  it('refuses to differentiate twice through a saved output', () => {
    const exponential = defineFunction({
      name: 'Exponential',
      forward(context, x: Tensor) {
        const y = x.exp();
        context.save(y);
        return y;
      },
      backward: ({ saved: [y] }, gradient) => (gradient as Tensor).mul(y as Tensor),
    });
    const x = tensor([0], { requiresGrad: true });
    exponential(x).sum().backward();
    expect(x.grad?.toArray()).toEqual([1]);
    expect(() => grad([exponential(x).sum()], [x], { createGraph: true })).toThrow(/saved output/);
  });
});

describe('registerHook', () => {
  it('hears the gradient, and changes it if it returns one', () => {
    const x = tensor([1, 2], { requiresGrad: true });
    const heard: unknown[] = [];
    const hook = x.registerHook((gradient) => {
      heard.push(gradient.toArray());
      return gradient.mul(10);
    });
    x.mul(3).sum().backward();
    expect(heard).toEqual([[3, 3]]);
    expect(x.grad?.toArray()).toEqual([30, 30]);
    hook.remove();
    hook.remove();
    const { grad: changed } = x;
    x.grad = null;
    x.mul(3).sum().backward();
    const { grad: plain } = x as { grad: Tensor | null };
    expect([changed?.toArray(), plain?.toArray()]).toEqual([
      [30, 30],
      [3, 3],
    ]);
    expect(heard).toHaveLength(1);
  });

  it('runs in an async backward, on this thread', async () => {
    const x = tensor([1], { requiresGrad: true });
    const y = x.mul(2);
    let seen = 0;
    y.registerHook((gradient) => {
      seen = gradient.item();
    });
    await y.mul(5).sum().backwardAsync();
    expect(seen).toBe(5);
    expect(x.grad?.toArray()).toEqual([10]);
  });

  it('refuses a gradient of another shape, and tensors without gradients', () => {
    const x = tensor([1, 2], { requiresGrad: true });
    x.registerHook((gradient) => gradient.sum());
    expect(() => x.sum().backward()).toThrow(/same shape/);
    expect(() => tensor([1]).registerHook(() => undefined)).toThrow(/does not require gradients/);
  });

  it('does not hold up a worker that is ended while its hooks run', async () => {
    const script = `
      import { parentPort } from 'node:worker_threads';
      const { tensor } = await import(${JSON.stringify(new URL('dist/index.js', `file://${root}`).href)});
      const x = tensor([1], { requiresGrad: true });
      x.registerHook(() => { parentPort.postMessage('in'); const end = Date.now() + 300; while (Date.now() < end); });
      for (let i = 0; i < 50; i++) void x.mul(2).sum().backwardAsync().catch(() => {});
    `;
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(script)}`));
    await new Promise((resolve) => worker.once('message', resolve));
    await worker.terminate();
    expect(cube(tensor([2])).toArray()).toEqual([8]);
  });
});
