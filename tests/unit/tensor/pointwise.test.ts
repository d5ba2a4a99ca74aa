import { describe, expect, it } from 'vitest';
import { arange, float, ones, tensor, zeros, type Tensor } from 'torchformer';

const list = (x: Tensor): unknown => x.toArray();
/** Rounded to 6 digits: for functions whose last bit may differ between machines. */
const near = (x: Tensor): number[] =>
  Array.from(x.double().data() as Float64Array, (v) => Number(v.toPrecision(6)));
const float64 = (values: number[]) => tensor(values, { dtype: 'float64' });
const ints = (values: number[]) => tensor(values, { dtype: 'int64' });

describe('functions of one operand', () => {
  const x = float64([-2, -0.5, 0, 0.5, 3]);
  const p = float64([0.1, 0.4, 0.9]);
  // Values from PyTorch.
  const cases: [name: string, found: Tensor, expected: number[]][] = [
    ['erf', x.erf(), [-0.995322, -0.5205, 0, 0.5205, 0.999978]],
    ['erfc', x.erfc(), [1.99532, 1.5205, 1, 0.4795, 2.20905e-5]],
    ['erfinv', p.erfinv(), [0.088856, 0.370807, 1.16309]],
    ['expm1', x.expm1(), [-0.864665, -0.393469, 0, 0.648721, 19.0855]],
    ['exp2', x.exp2(), [0.25, 0.707107, 1, 1.41421, 8]],
    ['log1p', p.log1p(), [0.0953102, 0.336472, 0.641854]],
    ['log2', p.log2(), [-3.32193, -1.32193, -0.152003]],
    ['log10', p.log10(), [-1, -0.39794, -0.0457575]],
    ['tan', x.tan(), [2.18504, -0.546302, 0, 0.546302, -0.142547]],
    ['asin', p.asin(), [0.100167, 0.411517, 1.11977]],
    ['acos', p.acos(), [1.47063, 1.15928, 0.451027]],
    ['atan', x.atan(), [-1.10715, -0.463648, 0, 0.463648, 1.24905]],
    ['sinh', x.sinh(), [-3.62686, -0.521095, 0, 0.521095, 10.0179]],
    ['cosh', x.cosh(), [3.7622, 1.12763, 1, 1.12763, 10.0677]],
    ['logit', p.logit(), [-2.19722, -0.405465, 2.19722]],
    ['silu', x.silu(), [-0.238406, -0.18877, 0, 0.31123, 2.85772]],
    ['mish', x.mish(), [-0.252501, -0.220744, 0, 0.375245, 2.98654]],
    ['logSigmoid', x.logSigmoid(), [-2.12693, -0.974077, -0.693147, -0.474077, -0.0485874]],
    ['gelu', x.gelu(), [-0.0455003, -0.154269, 0, 0.345731, 2.99595]],
    [
      'gelu by tanh',
      x.gelu({ approximate: 'tanh' }),
      [-0.0454023, -0.154286, 0, 0.345714, 2.99636],
    ],
    ['softplus', x.softplus(), [0.126928, 0.474077, 0.693147, 0.974077, 3.04859]],
    [
      'softplus with options',
      x.softplus({ beta: 2, threshold: 0.5 }),
      [0.00907496, 0.156631, 0.346574, 0.5, 3],
    ],
    ['leakyRelu', x.leakyRelu(), [-0.02, -0.005, 0, 0.5, 3]],
    ['elu', x.elu(0.5), [-0.432332, -0.196735, 0, 0.5, 3]],
    ['logaddexp', x.logaddexp(float64([0])), [0.126928, 0.474077, 0.693147, 0.974077, 3.04859]],
  ];
  it.each(cases)('%s', (_name, found, expected) => {
    expect(near(found)).toEqual(expected);
  });

  it('rounding', () => {
    const y = tensor([-1.5, -0.5, 0.5, 2.75]);
    expect(list(y.trunc())).toEqual([-1, -0, 0, 2]);
    expect(list(y.frac())).toEqual([-0.5, -0.5, 0.5, 0.75]);
    expect(near(float64([1.2345, -1.2355]).round({ decimals: 2 }))).toEqual([1.23, -1.24]);
    expect(list(tensor([1234]).round({ decimals: -2 }))).toEqual([1200]);
  });

  it('nanToNum', () => {
    const y = tensor([NaN, Infinity, -Infinity, 1]);
    expect(list(y.nanToNum({ nan: 5, posinf: 7, neginf: -7 }))).toEqual([5, 7, -7, 1]);
    expect(near(y.nanToNum())).toEqual([0, 3.40282e38, -3.40282e38, 1]);
  });
});

describe('functions of two operands', () => {
  it('quotients and remainders differ in the sign', () => {
    const x = ints([-7, 7]);
    expect(list(x.floorDivide(2))).toEqual([-4, 3]);
    expect(list(x.floorDivide(ints([-2])))).toEqual([3, -4]);
    expect(list(x.remainder(3))).toEqual([2, 1]);
    expect(list(x.fmod(3))).toEqual([-1, 1]);
    expect(x.floorDivide(2).dtype).toBe('int64');
    expect(x.fmod(float(2)).dtype).toBe('float32');
  });

  it('of geometry', () => {
    expect(near(float64([1, -1]).atan2(float64([0, 0])))).toEqual([1.5708, -1.5708]);
    expect(list(tensor([3]).hypot(tensor([4])))).toEqual([5]);
    expect(list(tensor([1, 2]).copysign(-1))).toEqual([-1, -2]);
  });

  it('of extremes with NaN', () => {
    const [x, nan] = [tensor([1]), tensor([NaN])];
    expect(list(x.maximum(nan))).toEqual([NaN]);
    expect(list(x.fmax(nan))).toEqual([1]);
    expect(list(nan.fmin(x))).toEqual([1]);
    expect(list(tensor([0, 1]).xlogy(0))).toEqual([0, -Infinity]);
  });

  it('of bits', () => {
    expect(list(ints([12]).bitwiseAnd(10))).toEqual([8]);
    expect(list(ints([12]).bitwiseOr(ints([10])))).toEqual([14]);
    expect(list(ints([12]).bitwiseXor(10))).toEqual([6]);
    expect(list(ints([0]).bitwiseNot())).toEqual([-1]);
    expect(list(tensor([true, false]).bitwiseNot())).toEqual([false, true]);
    expect(list(ints([3]).bitwiseLeftShift(2))).toEqual([12]);
    expect(list(ints([-3]).bitwiseRightShift(ints([1])))).toEqual([-2]);
  });

  it('on the way between tensors, and fused', () => {
    const [a, b] = [tensor([0, 10]), tensor([4, 20])];
    expect(list(a.lerp(b, 0.25))).toEqual([1, 12.5]);
    expect(list(a.lerp(b, tensor([0.5, 1])))).toEqual([2, 20]);
    expect(list(ones([2]).addcmul(a, b, { value: 2 }))).toEqual([1, 401]);
    expect(list(ones([2]).addcdiv(a, b))).toEqual([1, 1.5]);
  });
});

describe('comparison', () => {
  it('isclose, isin, logicalXor and infinities', () => {
    expect(list(tensor([1, 1]).isclose(tensor([1 + 1e-6, 1.1])))).toEqual([true, false]);
    expect(list(tensor([NaN]).isclose(tensor([NaN]), { equalNan: true }))).toEqual([true]);
    expect(list(ints([1, 2, 3]).isin(ints([3, 1])))).toEqual([true, false, true]);
    expect(list(tensor([1, 0]).logicalXor(tensor([2, 3])))).toEqual([false, true]);
    const y = tensor([Infinity, -Infinity, NaN]);
    expect(list(y.isposinf())).toEqual([true, false, false]);
    expect(list(y.isneginf())).toEqual([false, true, false]);
  });
});

describe('in place', () => {
  it('every method gives the tensor itself back', () => {
    const made: [(x: Tensor) => Tensor, number][] = [
      [(x) => x.neg_(), -4],
      [(x) => x.neg_().abs_(), 4],
      [(x) => x.sqrt_(), 2],
      [(x) => x.rsqrt_(), 0.5],
      [(x) => x.square_(), 16],
      [(x) => x.reciprocal_(), 0.25],
      [(x) => x.pow_(0.5), 2],
      [(x) => x.remainder_(3), 1],
      [(x) => x.clamp_(null, 3), 3],
      [(x) => x.zero_().exp_(), 1],
      [(x) => x.zero_().exp_().log_(), 0],
      [(x) => x.zero_().sigmoid_(), 0.5],
      [(x) => x.zero_().tanh_(), 0],
      [(x) => x.neg_().relu_(), 0],
      [(x) => x.add_(0.5).floor_(), 4],
      [(x) => x.add_(0.5).ceil_(), 5],
      [(x) => x.add_(0.5).round_(), 4],
      [(x) => x.add_(0.5).trunc_(), 4],
      [(x) => x.lerp_(tensor([8]), 0.5), 6],
      [(x) => x.addcmul_(tensor([2]), tensor([3])), 10],
      [(x) => x.addcdiv_(tensor([6]), tensor([3])), 6],
      [(x) => x.maskedFill_(tensor([true]), 9), 9],
    ];
    for (const [change, expected] of made) {
      const x = tensor([4]);
      expect(change(x)).toBe(x);
      expect(x.item(), String(change)).toBe(expected);
    }
  });
});

describe('faulty arguments', () => {
  const x = zeros([2, 3]);
  const cases: [ErrorConstructor, string, () => unknown][] = [
    [
      TypeError,
      'bitwiseAnd: the tensor must contain integers or bools, got float32; convert it: long() or bool()',
      () => x.bitwiseAnd(1),
    ],
    [TypeError, 'bitwiseOr: other must contain integers', () => arange(3).bitwiseOr(zeros([3]))],
    [TypeError, 'bitwiseNot: the tensor must contain integers', () => x.bitwiseNot()],
    [
      TypeError,
      "gelu: approximate must be 'none' or 'tanh', got the string \"erf\"",
      () => x.gelu({ approximate: 'erf' as never }),
    ],
    [TypeError, 'softplus: unknown option "alpha"', () => x.softplus({ alpha: 1 } as never)],
    [TypeError, 'leakyRelu: negativeSlope must be a number', () => x.leakyRelu('1' as never)],
    [TypeError, 'clamp_: pass min, max or both', () => x.clamp_()],
    [RangeError, 'lerp: the tensor [2, 3] and end [2] cannot', () => x.lerp(zeros([2]), 0.5)],
    [
      RangeError,
      'addcmul: tensor1 [2] and tensor2 [3] cannot be broadcast',
      () => x.addcmul(zeros([2]), zeros([3])),
    ],
    [RangeError, 'pow_: other [3, 3] cannot be broadcast', () => x.pow_(zeros([3, 3]))],
    [RangeError, 'atan2: the tensor [2, 3] and other [2] cannot', () => x.atan2(zeros([2]))],
    [RangeError, 'round: decimals must be an integer', () => x.round({ decimals: 0.5 })],
    [
      TypeError,
      'isclose: both must have the same dtype, got float32 and int64',
      () => x.isclose(arange(3)),
    ],
    [RangeError, 'maskedFill_: mask [2] cannot', () => x.maskedFill_(tensor([true, true]), 0)],
  ];
  it.each(cases)('%o: %s', (error, message, run) => {
    expect(run).toThrow(error);
    expect(run).toThrow(message);
  });
});
