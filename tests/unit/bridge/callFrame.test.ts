import { describe, expect, it } from 'vitest';
import { call, float, manualSeed, ones, tensor, TorchError, zeros, type Tensor } from 'torchformer';
import { native } from '../../../dist/tensor/dispatch.js';

const x = () => tensor([[1, -2, 3]]);
const [scale, shift] = [ones([3]), zeros([3])];

function ordinary(op: string, ...args: unknown[]): unknown {
  const [name, overload = ''] = op.split('.') as [string, string?];
  return native().bind(name, overload)(...args);
}

/** Elements of tensors in a result, and all else as it is. */
function read(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(read);
  return value !== null && typeof value === 'object' ? (value as Tensor).toArray() : value;
}

function outcome(run: () => unknown): unknown {
  manualSeed(3);
  try {
    return read(run());
  } catch (error) {
    return [(error as TorchError).code, (error as Error).message];
  }
}

describe('a call through the frame is the ordinary call', () => {
  const calls: [string, unknown[]][] = [
    ['aten::add.Tensor', [x(), x()]],
    ['aten::add.Tensor', [x(), x(), { alpha: 2 }]],
    ['aten::add.Tensor', [x(), x(), { alpha: float(2) }]],
    ['aten::add.Tensor', [{ other: x(), self: x() }]],
    ['aten::sum.dim_IntList', [x(), [1], { keepdim: true }]],
    ['aten::_to_copy', [x(), { dtype: 'float64' }]],
    ['aten::to.dtype', [x(), 'int64']],
    ['aten::topk', [x(), 2]],
    ['aten::gelu', [x(), { approximate: 'tanh' }]],
    ['aten::gelu', [x(), { approximate: undefined }]],
    ['aten::clamp', [x(), null, 2]],
    ['aten::native_dropout', [x(), 0.5, true]],
    ['aten::rand_like.generator', [x(), {}]],
    ['torchformer::linear', [x(), ones([2, 3]), null, { products: 'own' }]],
    ['torchformer::layer_norm', [x(), scale, shift, 1e-5, { sample_std: true }]],
    ['torchformer::dropout', [x(), 0.5]],
    ['torchformer::dropout', [x(), 0.5, { residual: x() }]],
    [
      'torchformer::add_norm',
      [x(), x(), scale, shift, 0.5, 1e-6, { results: 'bfloat16', centred: true }],
    ],
    ['torchformer::attention', [ones([1, 2, 3]), ones([1, 2, 3]), ones([1, 2, 3])]],
    // What has to be refused, in the same words.
    ['aten::add.Tensor', [x(), x(), 1]],
    ['aten::add.Tensor', [x(), x(), { other: x() }]],
    ['aten::add.Tensor', [x(), x(), { beta: 1 }]],
    ['aten::add.Tensor', [x(), x(), { alpha: 'two' }]],
    ['aten::add.Tensor', [x()]],
    ['aten::_to_copy', [x(), { dtype: 'float63' }]],
    ['aten::topk', [x(), 1.5]],
    ['torchformer::layer_norm', [x(), scale, shift, 1e-5, { results: 'float8' }]],
    ['torchformer::dropout', [x(), 0.5, { generator: 1 }]],
  ];

  it.each(calls)('%s(%j)', (op, args) => {
    expect(outcome(() => call(op, ...args))).toEqual(outcome(() => ordinary(op, ...args)));
  });

  it('serves ops with generators, several results and names', () => {
    for (const name of ['dropout', 'layer_norm', 'add_norm', 'attention', 'embed', 'adam_rows_']) {
      expect(native().bind(`torchformer::${name}`, '').frame, name).toBeDefined();
    }
  });

  it('gives back the very argument that an op writes to, also one given by name', () => {
    const target = x();
    expect(call('aten::add_.Tensor', target, x())).toBe(target);
    expect(call('aten::add_.Tensor', { other: x(), self: target })).toBe(target);
    expect(target.toArray()).toEqual([[3, -6, 9]]);
  });

  it('takes any number of different strings', () => {
    for (let count = 0; count < 1000; count++) {
      expect(() => call('aten::gelu', x(), { approximate: `none${count}` })).toThrow(TorchError);
    }
    expect(read(call('aten::gelu', zeros([1]), { approximate: 'none' }))).toEqual([0]);
  });

  it('leaves nothing of one call to the next', () => {
    call('aten::add.Tensor', x(), x(), { alpha: 5 });
    expect(read(call('aten::add.Tensor', x(), x()))).toEqual([[2, -4, 6]]);
    const disposed = x();
    disposed.dispose();
    expect(() => call('aten::add.Tensor', x(), disposed)).toThrow(/has been disposed of/);
  });
});
