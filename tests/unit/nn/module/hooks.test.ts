import { describe, expect, it } from 'vitest';
import {
  keep,
  Linear,
  makeModel,
  memory,
  Module,
  noGrad,
  ones,
  Sequential,
  subsequentMask,
  tensor,
  tidy,
  zeros,
} from 'torchformer';
import type { Tensor } from 'torchformer';
import { largestDifference, numbers } from '../../../support/numbers.js';

/** Weight 2, no bias. */
function doubling(): Linear {
  const linear = new Linear(1, 1, { bias: false });
  linear.weight.detach().fill_(2);
  return linear;
}

/** `[a · b, a + b]` */
class Both extends Module {
  override forward(a: Tensor, b: Tensor): [Tensor, Tensor] {
    return [a.mul(b), a.add(b)];
  }
}

const leaf = (value: number) => tensor([value], { requiresGrad: true });
const values = (gradients: readonly (Tensor | null)[]) =>
  gradients.map((gradient) => (gradient === null ? null : numbers(gradient)));

describe('forward hooks', () => {
  it('see inputs before and outputs after each forward, in the order they came', () => {
    const linear = doubling();
    const seen: unknown[] = [];
    linear.registerForwardPreHook((module, [input]) => {
      seen.push(['pre', module === linear, numbers(input)]);
    });
    linear.registerForwardHook((module, [input], output) => {
      seen.push(['after', module === linear, numbers(input), numbers(output)]);
    });
    linear.registerForwardHook(() => void seen.push('last'));
    linear.registerForwardHook(() => void seen.push('first'), { prepend: true });
    new Sequential(linear).forward(ones([1, 1]));
    expect(seen).toEqual([['pre', true, [1]], 'first', ['after', true, [1], [2]], 'last']);
  });

  it('replace inputs and outputs', () => {
    const linear = doubling();
    linear.registerForwardPreHook((_module, [input]) => [input.add(10)]);
    linear.registerForwardPreHook((_module, [input]) => [input.mul(3)]);
    linear.registerForwardHook((_module, _inputs, output) => output.add(0.5));
    linear.registerForwardHook((_module, [input], output) => output.sub(input));
    expect(numbers(linear.forward(ones([1, 1])))).toEqual([33.5]);
  });

  it('are gone once removed, even while they run', () => {
    const linear = doubling();
    const seen: string[] = [];
    const first = linear.registerForwardHook(() => {
      seen.push('first');
      first.remove();
    });
    const second = linear.registerForwardHook(() => void seen.push('second'));
    linear.forward(ones([1, 1]));
    linear.forward(ones([1, 1]));
    second.remove();
    second.remove();
    linear.forward(ones([1, 1]));
    expect(seen).toEqual(['first', 'second', 'second']);
  });

  it('cost nothing when there are none: forward is the one of the class', () => {
    const linear = doubling();
    expect(Object.hasOwn(linear, 'forward')).toBe(false);
    const before = Reflect.ownKeys(linear);
    const handle = linear.registerForwardHook(() => undefined);
    expect(Object.hasOwn(linear, 'forward')).toBe(true);
    expect(Object.keys(linear)).toEqual(before);
    handle.remove();
    expect(Reflect.ownKeys(linear)).toEqual(before);
  });

  it('run once for a forward that calls that of its base class', () => {
    class Negated extends Linear {
      override forward(input: Tensor): Tensor {
        return super.forward(input).neg();
      }
    }
    const module = new Negated(1, 1);
    let calls = 0;
    module.registerForwardHook(() => void calls++);
    module.forward(ones([1, 1]));
    expect(calls).toBe(1);
  });

  it('stay around a forward assigned to the module, before or after', () => {
    const linear = doubling();
    linear.forward = (input) => input.add(5);
    const handle = linear.registerForwardHook((_module, _inputs, output) => output.mul(10));
    expect(numbers(linear.forward(ones([1, 1])))).toEqual([60]);
    linear.forward = (input) => input.add(6);
    expect(numbers(linear.forward(ones([1, 1])))).toEqual([70]);
    handle.remove();
    expect(numbers(linear.forward(ones([1, 1])))).toEqual([7]);
  });

  it('let a failing forward or hook through, and work the next time', () => {
    const linear = doubling();
    linear.registerForwardPreHook((_module, [input]) => {
      if (input.ndim === 3) throw new Error('from the hook');
    });
    expect(() => linear.forward(ones([1, 1, 1]))).toThrow('from the hook');
    expect(() => linear.forward(ones([1, 7]))).toThrow(RangeError);
    expect(numbers(linear.forward(ones([1, 1])))).toEqual([2]);
  });

  it('do not change what the module has, is and says', () => {
    const linear = doubling();
    const [text, keys] = [String(linear), [...linear.stateDict().keys()]];
    linear.registerForwardHook(() => undefined);
    expect(String(linear)).toBe(text);
    expect([...linear.stateDict().keys()]).toEqual(keys);
    expect(linear.modules()).toEqual([linear]);
  });

  it('keep what they store when it is kept', () => {
    const linear = doubling();
    let stored: Tensor | undefined;
    linear.registerForwardHook((_module, _inputs, output) => {
      stored = keep(output.detach());
    });
    tidy(() => {
      linear.forward(ones([1, 1]));
    });
    expect(numbers(stored as Tensor)).toEqual([2]);
  });

  it('refuse what is no function, and results that are no inputs', () => {
    const linear = doubling();
    expect(() => linear.registerForwardHook('x' as never)).toThrow(
      'registerForwardHook: hook must be a function, got the string "x"',
    );
    expect(() => linear.registerForwardPreHook(null as never)).toThrow(/registerForwardPreHook/);
    expect(() => linear.registerForwardHook(() => undefined, { first: true } as never)).toThrow(
      /"first".*prepend/,
    );
    linear.registerForwardPreHook((_module, [input]) => input as never);
    expect(() => linear.forward(ones([1, 1]))).toThrow(/must return an array of all inputs/);
  });
});

describe('results of hooks', () => {
  it('null changes nothing, as undefined and as None in PyTorch', () => {
    const linear = doubling();
    linear.registerForwardPreHook(() => null);
    linear.registerForwardHook(() => null);
    linear.registerBackwardHook(() => null);
    const x = tensor([[3]], { requiresGrad: true });
    const y = linear.forward(x);
    y.backward();
    expect([numbers(y), numbers(x.grad as Tensor)]).toEqual([[6], [2]]);
  });

  // They took the place of the output, whatever they were.
  it.each<[string, () => unknown, RegExp]>([
    ['the length of an array', () => 1, /must return a Tensor, like forward, or nothing, got 1$/],
    ['false', () => false, /got false/],
    ['an array', () => [ones([1])], /got an array of 1/],
    ['a Promise', () => Promise.resolve(1), /got a Promise; hooks must not be async/],
    ['a Promise that fails', () => Promise.reject(new Error('later')), /got a Promise/],
  ])('are refused in place of a tensor: %s', (_what, result, message) => {
    const linear = doubling();
    linear.registerForwardHook(function spoil() {
      return result() as never;
    });
    expect(() => linear.forward(ones([1, 1]))).toThrow(message);
    expect(() => linear.forward(ones([1, 1]))).toThrow(
      /^Linear: a forward hook \(the function spoil\)/,
    );
  });

  it('are refused in place of arrays and other results too, by the name of the hook', () => {
    const both = new Both();
    both.registerForwardHook(function spoil() {
      return ones([1]) as never;
    });
    expect(() => both.forward(ones([1]), ones([1]))).toThrow(/spoil\) must return an array/);
    class Named extends Module {
      override forward(x: Tensor): { x: Tensor } {
        return { x };
      }
    }
    const named = new Named();
    const handle = named.registerForwardHook(() => 3 as never);
    expect(() => named.forward(ones([1]))).toThrow(/must return the same kind of value as forward/);
    handle.remove();
    named.registerForwardHook((_module, _inputs, { x }) => ({ x: x.neg() }));
    expect(numbers(named.forward(ones([1])).x)).toEqual([-1]);
    const linear = doubling();
    linear.registerForwardPreHook(async function early() {} as never);
    expect(() => linear.forward(ones([1, 1]))).toThrow(
      /a forward pre-hook \(the function early\).*got a Promise; hooks must not be async/,
    );
    const other = doubling();
    other.registerBackwardHook(async function late() {} as never);
    const y = other.forward(tensor([[1]], { requiresGrad: true }));
    expect(() => y.backward()).toThrow(/a backward hook \(the function late\).*must not be async/);
  });
});

describe('hooks and copies', () => {
  it('a clone has the hooks, which handles of the original do not reach', () => {
    const linear = doubling();
    const seen: Module[] = [];
    const handle = linear.registerForwardHook((module) => void seen.push(module));
    const copy = linear.clone();
    handle.remove();
    copy.weight.detach().fill_(5);
    expect(numbers(copy.forward(ones([1, 1])))).toEqual([5]);
    expect(numbers(linear.forward(ones([1, 1])))).toEqual([2]);
    expect(seen).toEqual([copy]);
  });

  it('clearHooks takes all of them away', () => {
    const linear = doubling();
    let calls = 0;
    linear.registerForwardHook(() => void calls++);
    linear.registerForwardPreHook(() => void calls++);
    linear.registerBackwardHook(() => void calls++);
    const copy = linear.clone();
    expect(copy.clearHooks()).toBe(copy);
    copy.forward(ones([1, 1])).backward();
    expect(calls).toBe(0);
    expect(Object.hasOwn(copy, 'forward')).toBe(false);
    linear.forward(ones([1, 1])).backward();
    expect(calls).toBe(3);
  });
});

describe('backward hooks', () => {
  it('see the gradients of inputs and outputs, as PyTorch gives them', () => {
    const linear = doubling();
    const seen: unknown[] = [];
    linear.registerBackwardHook((module, gradInputs, gradOutputs) => {
      seen.push([module === linear, values(gradInputs), values(gradOutputs)]);
    });
    const x = tensor([[4]], { requiresGrad: true });
    linear.forward(x).mul(3).backward();
    expect(seen).toEqual([[true, [[6]], [[3]]]]);
    expect(numbers(x.grad as Tensor)).toEqual([6]);
    expect(numbers(linear.weight.grad as Tensor)).toEqual([12]);
  });

  it('are called once with all inputs and outputs, and replace the gradients of the inputs', () => {
    const both = new Both();
    const seen: unknown[] = [];
    both.registerBackwardHook((_module, gradInputs, gradOutputs) => {
      seen.push([values(gradInputs), values(gradOutputs)]);
      return gradInputs.map((gradient) => gradient && gradient.mul(100));
    });
    both.registerBackwardHook((_module, gradInputs) => void seen.push(values(gradInputs)));
    const [a, b] = [leaf(2), leaf(3)];
    const [product, sum] = both.forward(a, b);
    product.add(sum.mul(10)).backward();
    expect(seen).toEqual([
      [
        [[13], [12]],
        [[1], [10]],
      ],
      [[1300], [1200]],
    ]);
    expect([numbers(a.grad as Tensor), numbers(b.grad as Tensor)]).toEqual([[1300], [1200]]);
  });

  it('have null for inputs without and outputs without a gradient', () => {
    const both = new Both();
    const seen: unknown[] = [];
    both.registerBackwardHook((_module, ...gradients) => void seen.push(gradients.map(values)));
    const a = leaf(2);
    both.forward(a, tensor([3]))[0].backward();
    expect(seen).toHaveLength(1);
    const [gradInputs, gradOutputs] = seen[0] as [unknown[], unknown[]];
    expect(gradInputs).toEqual([[3], null]);
    expect(gradOutputs[0]).toEqual([1]);
    expect([[0], null]).toContainEqual(gradOutputs[1]);
  });

  it('are called for inputs that need no gradient, with nulls, and may not return any', () => {
    const linear = doubling();
    const seen: unknown[] = [];
    const handle = linear.registerBackwardHook((_module, ...gradients) => {
      seen.push(gradients.map(values));
    });
    linear.forward(ones([1, 1])).backward();
    expect(seen).toEqual([[[null], [[1]]]]);
    handle.remove();
    linear.registerBackwardHook(() => [ones([1, 1])]);
    expect(() => linear.forward(ones([1, 1])).backward()).toThrow(
      /no input of forward requires them/,
    );
  });

  it('run in each backward of a graph that is kept, and not without gradients', () => {
    const linear = doubling();
    let calls = 0;
    linear.registerBackwardHook(() => void calls++);
    const y = linear.forward(tensor([[1]], { requiresGrad: true }));
    y.backward({ retainGraph: true });
    y.backward();
    expect(calls).toBe(2);
    const plain = noGrad(() => linear.forward(ones([1, 1])));
    expect([plain.requiresGrad, calls]).toEqual([false, 2]);
  });

  it('are gone once removed, also between forward and backward', () => {
    const linear = doubling();
    let calls = 0;
    const handle = linear.registerBackwardHook(() => void calls++);
    const y = linear.forward(tensor([[1]], { requiresGrad: true }));
    handle.remove();
    y.backward();
    linear.forward(tensor([[1]], { requiresGrad: true })).backward();
    expect(calls).toBe(0);
  });

  it('do not change results or gradients', () => {
    const run = (hooked: boolean) => {
      const net = new Sequential(new Linear(3, 4), new Linear(4, 2));
      net.parameters().forEach((parameter, index) => {
        parameter.detach().fill_(0.1 * (index + 1));
      });
      if (hooked) for (const module of net.modules()) module.registerBackwardHook(() => undefined);
      const x = tensor([[1, 2, 3]], { requiresGrad: true });
      const output = net.forward(x);
      output.pow(2).sum().backward();
      return [output, x.grad, ...net.parameters().map(({ grad }) => grad)].map((item) =>
        numbers(item as Tensor),
      );
    };
    expect(run(true)).toEqual(run(false));
  });

  it('work in asynchronous backwards', async () => {
    const linear = doubling();
    const seen: unknown[] = [];
    linear.registerBackwardHook((_module, ...gradients) => void seen.push(gradients.map(values)));
    await linear.forward(tensor([[1]], { requiresGrad: true })).backwardAsync();
    expect(seen).toEqual([[[[2]], [[1]]]]);
  });

  it('let their errors through', () => {
    const linear = doubling();
    linear.registerBackwardHook(() => {
      throw new Error('from the hook');
    });
    const y = linear.forward(tensor([[1]], { requiresGrad: true }));
    expect(() => y.backward()).toThrow('from the hook');
  });

  it('refuse results of a wrong kind', () => {
    const linear = doubling();
    linear.registerBackwardHook(() => [] as never);
    const y = linear.forward(tensor([[1]], { requiresGrad: true }));
    expect(() => y.backward()).toThrow(/gradient or null for each of forward's 1 arguments/);
    class Odd extends Module {
      override forward(x: Tensor): { x: Tensor } {
        return { x };
      }
    }
    const odd = new Odd();
    odd.registerBackwardHook(() => undefined);
    expect(() => odd.forward(zeros([1]))).toThrow(/must return a tensor or an array of tensors/);
  });

  it('leave no tensors behind, and results as they are, in a whole model', () => {
    const size = { N: 1, dModel: 8, dFf: 16, h: 2, dropout: 0, attentionDropout: 0 };
    const model = makeModel(11, size).double();
    const hooked = model.clone();
    let calls = 0;
    for (const module of hooked.modules()) {
      module.registerForwardHook(() => void calls++);
      module.registerBackwardHook(() => void calls++);
    }
    const ids = tensor([[1, 2, 3]], { dtype: 'int64' });
    const run = (subject: typeof model) =>
      tidy(() => {
        const output = subject.forward(ids, ids, null, subsequentMask(3));
        output.pow(2).sum().backward();
        return output;
      });
    expect(largestDifference(run(hooked), run(model))).toBe(0);
    // Gradients of several uses are added in another order.
    for (const [name, { grad }] of model.decoder.namedParameters()) {
      const other = hooked.decoder.getParameter(name).grad as Tensor;
      expect(largestDifference(other, grad as Tensor)).toBeLessThan(1e-10);
    }
    expect(calls).toBeGreaterThan(2 * 30);
    expect(calls % 2).toBe(0);
    const before = memory().tensors;
    run(hooked).dispose();
    expect(memory().tensors).toBe(before);
  });
});
