import { describe, expect, it } from 'vitest';
import {
  Adafactor,
  call,
  manualSeed,
  memory,
  noGrad,
  Parameter,
  randn,
  tensor,
  zeros,
  type AdafactorSettings,
  type Tensor,
} from 'torchformer';
import { numbers } from '../../support/numbers.js';

function stepOf(
  parameter: Parameter,
  gradient: Tensor,
  options: Partial<AdafactorSettings> = {},
): number[] {
  const optimizer = new Adafactor([parameter], options);
  parameter.grad = gradient;
  optimizer.step();
  optimizer.dispose();
  return numbers(parameter);
}

describe('Adafactor', () => {
  it('moves a vector by lr times its size in the direction of the signs', () => {
    // In the first step the variance is the square, so the update is ±1; the size is √((9+16)/2).
    const moved = stepOf(new Parameter(tensor([3, 4])), tensor([0.5, -2]), { lr: 0.1 });
    const rate = 0.1 * Math.sqrt(25 / 2);
    expect(moved[0]).toBeCloseTo(3 - rate, 5);
    expect(moved[1]).toBeCloseTo(4 + rate, 5);
  });

  it('divides a matrix by the root of row mean · column mean / mean', () => {
    // Squares [[1, 4], [4, 16]] are exactly of rank one: every update is ±1.
    const moved = stepOf(
      new Parameter(tensor([[1, 1], [1, 1]])), // prettier-ignore
      tensor([[1, -2], [-2, 4]]), // prettier-ignore
      { lr: 0.5 },
    );
    [0.5, 1.5, 1.5, 0.5].forEach((value, place) => expect(moved[place]).toBeCloseTo(value, 6));
  });

  it('keeps updates of small parameters from vanishing by eps[1]', () => {
    const moved = stepOf(new Parameter(zeros([2])), tensor([1, -1]), {
      lr: 0.1,
      eps: [null, 0.01],
    });
    expect(moved[0]).toBeCloseTo(-0.001, 8);
    expect(moved[1]).toBeCloseTo(0.001, 8);
  });

  it('never moves further than 1/√step of the size', () => {
    expect(stepOf(new Parameter(tensor([2])), tensor([1]), { lr: 50 })[0]).toBeCloseTo(0, 6);
  });

  it('shrinks the parameter itself by weightDecay', () => {
    const moved = stepOf(new Parameter(tensor([2])), tensor([0]), { lr: 0.5, weightDecay: 0.1 });
    expect(moved[0]).toBeCloseTo(2 * (1 - 0.05), 6);
  });

  it('is finite with the eps of the paper, also where a gradient is 0', () => {
    const gradient = tensor([[0, 0], [1e-20, 1]]); // prettier-ignore
    const moved = stepOf(new Parameter(zeros([2, 2])), gradient, { eps: [1e-30, 1e-3] });
    expect(moved.every(Number.isFinite)).toBe(true);
    expect(moved.slice(0, 2)).toEqual([0, 0]);
  });

  it('stores a number for each row and column of a matrix', () => {
    const weight = new Parameter(zeros([30, 20]));
    const optimizer = new Adafactor([weight]);
    weight.grad = zeros([30, 20]).fill_(1);
    optimizer.step();
    const shapes = [...optimizer.stateDict().tensors].map(([name, { shape }]) => [name, shape]);
    expect(Object.fromEntries(shapes)).toEqual({
      '0.step': [],
      '0.row_var': [30, 1],
      '0.col_var': [1, 20],
    });
  });

  it('updates rows of a sparse gradient as the dense one does, repeated rows and decay too', () => {
    manualSeed(1);
    const initial = randn([50, 7], { dtype: 'float64' });
    const ids = tensor([[3, 41, 3]], { dtype: 'int64' });
    const values = randn([3, 7], { dtype: 'float64' });
    const sparse = call('aten::_sparse_coo_tensor_unsafe', ids, values, [50, 7]) as Tensor;
    const dense = call('aten::_to_dense', sparse) as Tensor;
    const [one, other] = [sparse, dense].map((gradient) => {
      const parameter = new Parameter(initial.clone());
      const optimizer = new Adafactor([parameter], { lr: 0.1, weightDecay: 0.3 });
      for (let step = 0; step < 3; step++) {
        parameter.grad = gradient;
        optimizer.step();
      }
      return parameter;
    }) as [Parameter, Parameter];
    expect(noGrad(() => one.sub(other).abs().max().item())).toBeLessThan(1e-14);
    expect(noGrad(() => one.sub(initial).abs().max().item())).toBeGreaterThan(1e-3);
  });

  it('gives the same off the event loop, and leaves only its state behind', async () => {
    manualSeed(2);
    const [initial, gradient] = [randn([40, 33]), randn([40, 33])];
    const [waiting, background] = [new Parameter(initial.clone()), new Parameter(initial.clone())];
    const [one, other] = [new Adafactor([waiting]), new Adafactor([background])];
    waiting.grad = gradient;
    background.grad = gradient;
    one.step();
    await other.stepAsync();
    const before = memory().tensors;
    one.step();
    await other.stepAsync();
    expect(memory().tensors).toBe(before);
    expect(numbers(background)).toEqual(numbers(waiting));
  });

  it('continues from its state as if it had not stopped', () => {
    manualSeed(3);
    const gradients = [randn([4, 3]), randn([4, 3]), randn([4, 3])];
    const train = (parameter: Parameter, optimizer: Adafactor, from: number, to: number) => {
      for (const gradient of gradients.slice(from, to)) {
        parameter.grad = gradient;
        optimizer.step();
      }
    };
    const initial = randn([4, 3]);
    const whole = new Parameter(initial.clone());
    train(whole, new Adafactor([whole]), 0, 3);
    const parted = new Parameter(initial.clone());
    const first = new Adafactor([parted]);
    train(parted, first, 0, 2);
    const second = new Adafactor([parted]);
    second.loadStateDict(first.stateDict());
    train(parted, second, 2, 3);
    expect(numbers(parted)).toEqual(numbers(whole));
  });

  it('refuses settings out of range', () => {
    const make = (options: object) => () => new Adafactor([new Parameter(zeros([1]))], options);
    expect(make({ beta2Decay: 0.8 })).toThrow(/beta2Decay must be a finite number of at most 0/);
    expect(make({ eps: 1e-3 })).toThrow(/eps must be \[number or null, number\]/);
    expect(make({ eps: [null, -1] })).toThrow(/eps\[1\]/);
    expect(make({ clipThreshold: 0.5 })).toThrow(/clipThreshold must be at least 1, got 0.5/);
    expect(make({ betas: [0.9, 0.99] })).toThrow(/"betas"; valid options/);
  });
});

describe('the op', () => {
  it('equals its reference in plain ops, whatever the number of rows', () => {
    manualSeed(4);
    for (const shape of [[1, 1], [700, 9], [3, 500], [2, 40, 5], [17], []]) {
      // prettier-ignore
      const [fused, plain] = ['adafactor_', 'adafactor_reference_'].map((op) => {
        manualSeed(5);
        const parameter = randn(shape, { dtype: 'float64' });
        const isMatrix = shape.length > 1;
        const rows = zeros(isMatrix ? shape.with(-1, 1) : shape, { dtype: 'float64' });
        const columns = isMatrix ? zeros(shape.with(-2, 1), { dtype: 'float64' }) : null;
        for (let step = 1; step <= 3; step++) {
          const gradient = randn(shape, { dtype: 'float64' });
          const settings = { lr: 0.1, weight_decay: 0.1 };
          call(`torchformer::${op}`, parameter, gradient, rows, columns, step, settings);
        }
        return parameter;
      }) as [Tensor, Tensor];
      expect(fused.sub(plain).abs().max().item(), String(shape)).toBeLessThan(1e-13);
    }
  });

  it('checks everything before it changes anything', () => {
    const update =
      (rows: Tensor, columns: Tensor | null, settings: object = { lr: 0.1 }) =>
      () => {
        call('torchformer::adafactor_', zeros([2, 3]), zeros([2, 3]), rows, columns, 1, settings);
      };
    expect(update(zeros([2, 1]), zeros([1, 3]))).not.toThrow();
    expect(update(zeros([3, 1]), zeros([1, 3]))).toThrow(/row_var must be \[2, 1\]/);
    expect(update(zeros([2, 1]), null)).toThrow(/col_var/);
    expect(update(zeros([2, 1], { dtype: 'float64' }), zeros([1, 3]))).toThrow(/row_var/);
    expect(update(zeros([2, 1]), zeros([1, 3]), { lr: NaN })).toThrow(/lr must be at least 0/);
    const wrong = call('aten::_sparse_coo_tensor_unsafe', tensor([[5]], { dtype: 'int64' }), zeros([1, 3]), [2, 3]) as Tensor; // prettier-ignore
    expect(
      () =>
      call('torchformer::adafactor_', zeros([2, 3]), wrong, zeros([2, 1]), zeros([1, 3]), 1, { lr: 1 }), // prettier-ignore
    ).toThrow(/indices from 0 to 1, got 5/);
  });
});
