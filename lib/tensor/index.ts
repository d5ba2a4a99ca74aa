/** Tensors, autograd, scopes, random state, and the typed calls into libtorch's dispatcher. */
export { Tensor, isTensor, type ToOptions } from './tensor.js';
export {
  dtypes,
  isDType,
  isFloatingPoint,
  byteSize,
  type DType,
  type TensorData,
  type TensorSource,
} from './dtype.js';
export { cudaIsAvailable, type Device } from './device.js';
export type { Scalar } from './check.js';
export type { NestedArray, ReadonlyNestedArray } from './nested.js';
export type { AlphaOptions, DivOptions } from './methods/elementwise.js';
export type { AllcloseOptions } from './methods/comparison.js';
export type { Sizes } from './methods/shape.js';
export type {
  Dims,
  KeepdimOptions,
  ReduceOptions,
  SoftmaxOptions,
  ValuesAndIndices,
  VarianceOptions,
} from './methods/reduction.js';
export {
  arange,
  cat,
  empty,
  eye,
  fromBytes,
  full,
  linspace,
  ones,
  onesLike,
  rand,
  randint,
  randn,
  randperm,
  stack,
  tensor,
  zeros,
  zerosLike,
  type CreateOptions,
  type Shape,
  type TensorOptions,
} from './create.js';
export { where } from './where.js';
export {
  enableGrad,
  grad,
  isGradEnabled,
  noGrad,
  type BackwardOptions,
  type GradOptions,
} from './autograd.js';
export { getRngState, manualSeed, setRngState } from './random.js';
export { getNumThreads, setNumThreads } from './threads.js';
export {
  call,
  callAsync,
  callTensor,
  callTensors,
  float,
  ops,
  type FloatScalar,
} from './dispatch.js';
export { keep, memory, Scope, tidy } from './scope.js';
