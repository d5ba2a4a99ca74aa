/** Tensors, autograd, scopes, random state, and the typed calls into libtorch's dispatcher. */
export { Tensor, type ToOptions } from './tensor.js';
export { isTensor } from './slot.js';
export {
  dtypes,
  isDType,
  isFloatingPoint,
  byteSize,
  type DType,
  type TensorData,
  type TensorSource,
} from './dtype.js';
export type { Device, DeviceChoice } from './device.js';
export { cuda, type CudaMemory, type Float32Precision } from './cuda.js';
export type { Scalar } from './check.js';
export type { NestedArray, ReadonlyNestedArray } from './nested.js';
export type { AlphaOptions, DivOptions, RoundOptions } from './methods/elementwise.js';
export type {
  GeluOptions,
  NanToNumOptions,
  SoftplusOptions,
  ValueOptions,
} from './methods/pointwise.js';
export type { MultinomialOptions } from './methods/random.js';
export type { AllcloseOptions } from './methods/comparison.js';
export type { Sizes } from './methods/shape.js';
export type { DiagonalOptions } from './methods/rearrangement.js';
export type { Dims, KeepdimOptions, ValuesAndIndices } from './methods/dimensionArguments.js';
export type { ReduceOptions, SoftmaxOptions, VarianceOptions } from './methods/reduction.js';
export type { AminmaxOptions, BincountOptions, CumulateOptions } from './methods/statistics.js';
export type {
  SearchOptions,
  SortOptions,
  TopkOptions,
  UniqueOptions,
  UniqueParts,
} from './methods/sorting.js';
export type { IndexPutOptions } from './methods/indexing.js';
export type { ScatterReduceOptions, ScatterReduction } from './methods/scatter.js';
export type { ProductOptions } from './methods/linearAlgebra.js';
export {
  arange,
  empty,
  emptyLike,
  eye,
  fromBytes,
  full,
  fullLike,
  linspace,
  ones,
  onesLike,
  rand,
  randLike,
  randint,
  randn,
  randnLike,
  randperm,
  tensor,
  zeros,
  zerosLike,
  type CreateOptions,
  type Shape,
  type TensorOptions,
} from './create.js';
export {
  broadcastTensors,
  cat,
  hstack,
  meshgrid,
  stack,
  vstack,
  type MeshgridOptions,
} from './join.js';
export { einsum } from './einsum.js';
export { linalg, type MatrixNorm, type SvdOptions, type UpperOptions } from './linalg.js';
export { canCast, promoteTypes, resultType } from './promotion.js';
export { autocast, type AutocastDType, type AutocastOptions } from './autocast.js';
export { batchInvariant } from './batchInvariant.js';
export { print } from './print.js';
export { profile, type OpTime } from './profile.js';
export type { Index, SliceRange, SliceText } from './pythonIndex.js';
export { where } from './where.js';
export {
  enableGrad,
  grad,
  isGradEnabled,
  noGrad,
  type BackwardOptions,
  type GradOptions,
} from './autograd.js';
export {
  defineFunction,
  type FunctionContext,
  type FunctionDefinition,
  type Gradients,
  type RemovableHook,
} from './autogradFunction.js';
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
export { memory } from './memory.js';
export { keep, Scope, tidy } from './scope.js';
