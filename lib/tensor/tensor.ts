import { registerGradientHook, type RemovableHook } from './autogradFunction.js';
import { checkBoolean, checkInteger, checkOptions, description } from '../runtime/arguments.js';
import { runBackward, runBackwardAsync, type BackwardOptions } from './autograd.js';
import { checkCanRequireGrad, checkTensor, explained, formatShape } from './check.js';
import { cudaState } from './cudaState.js';
import { checkDevice, needCuda, type Device, type DeviceChoice } from './device.js';
import { call, callTensor, native } from './dispatch.js';
import { checkDType, typedArrayOver, type DType, type TensorData } from './dtype.js';
import { addMethods, type TensorMethods } from './methods/index.js';
import { nestedArray, type NestedArray } from './nested.js';
import { formatTensor } from './print.js';
import { currentScope } from './scope.js';
import { releaseSlot, SlotHolder, slotOf, useNewTensor } from './slot.js';

/* eslint-disable @typescript-eslint/no-unsafe-declaration-merging, @typescript-eslint/no-empty-object-type --
   Tensor is also an interface, which declares the methods that addMethods adds to its prototype. */

/**
 * Whether a scope may dispose of a tensor. Symbols cannot be cloned, so these also make
 * `structuredClone` and `postMessage` fail with this text, instead of returning an object without
 * the tensor's memory.
 */
const clonesLack = 'the memory of a Tensor: send its data() or bytes(), with shape and dtype';
const scoped = Symbol(clonesLack);
const outliving = Symbol(clonesLack);

const inspect: unique symbol = Symbol.for('nodejs.util.inspect.custom') as never;

/** Options of {@link Tensor.to}. */
export interface ToOptions {
  /** Default: the tensor's own. */
  dtype?: DType;
  /** Default: the tensor's own. */
  device?: DeviceChoice;
  /** Copy even if nothing changes. Default false. */
  copy?: boolean;
  /**
   * Do not wait for a copy between the CPU and a GPU if the tensor on the CPU is pinned. A copy to the
   * CPU must not be read before `cuda.synchronize()`. Default false.
   */
  nonBlocking?: boolean;
}

/**
 * A multi-dimensional array of numbers on the CPU or a GPU, with automatic differentiation.
 *
 * Names and semantics are those of PyTorch; methods with a trailing underscore work in place. Tensors
 * are created by functions such as {@link tensor} and {@link zeros} or from other tensors, not with
 * `new`. Native code holds their memory until {@link Tensor.dispose}, the end of a scope, or garbage
 * collection. Tensors cannot be cloned or sent to another thread (`structuredClone` and `postMessage`
 * throw a DataCloneError): send the elements, `data()`.
 *
 * Properties, conversions, gradients and disposal are here; the other methods are in `methods/`, one
 * file per topic.
 */
export class Tensor extends SlotHolder {
  // An own property, since cloning considers only these.
  private lifetime: symbol;

  /** For `makeTensor` only: an object created elsewhere with `new` has no memory. */
  protected constructor() {
    super();
    this.lifetime = scoped;
    currentScope()?.add(this);
  }

  /** True for tensors that no scope disposes of. Set by `keep`. @internal */
  get kept(): boolean {
    return this.lifetime === outliving;
  }

  set kept(kept: boolean) {
    this.lifetime = kept ? outliving : scoped;
  }

  // Properties.

  /** The sizes of the dimensions; `[]` for a single number. */
  get shape(): readonly number[] {
    return native().shape(this);
  }

  /** Distance in memory between adjacent elements along each dimension, in elements. */
  get strides(): readonly number[] {
    return native().strides(this);
  }

  /** The number of dimensions. */
  get ndim(): number {
    return native().shape(this).length;
  }

  /** The number of elements. */
  get numel(): number {
    return native().numel(this);
  }

  /** The type of the elements: `'float32'`, `'int64'`, … */
  get dtype(): DType {
    return native().dtype(this);
  }

  /** `'cpu'` or `'cuda:0'`. */
  get device(): Device {
    return native().device(this) as Device;
  }

  /** Whether the elements are in row-major order without gaps. */
  get isContiguous(): boolean {
    return native().isContiguous(this);
  }

  /**
   * Whether only some rows are stored, as in the gradient of an embedding with `sparseGradient`;
   * `ops.aten._to_dense(tensor)` converts it to a dense tensor.
   */
  get isSparse(): boolean {
    return native().isSparse(this);
  }

  /** Whether {@link Tensor.dispose} was called; any other use then throws ERR_DISPOSED. */
  get isDisposed(): boolean {
    return slotOf(this) <= 0;
  }

  // Elements.

  /**
   * A copy of the elements in row-major order, regardless of strides. float16 and bfloat16 are
   * returned as Float32Array, int64 as BigInt64Array, bool as Uint8Array of 0 and 1.
   */
  data(): TensorData {
    const { dtype } = this;
    if (dtype === 'float16' || dtype === 'bfloat16') {
      const converted = callTensor('aten::to.dtype', this, 'float32');
      const copy = typedArrayOver(native().toBytes(converted), 'float32');
      converted.dispose();
      return copy;
    }
    return typedArrayOver(native().toBytes(this), dtype);
  }

  /** A copy of the bytes of the elements in row-major order, in the format of the dtype. */
  bytes(): Uint8Array {
    return new Uint8Array(native().toBytes(this));
  }

  /**
   * The elements as nested arrays; for a 0-dim tensor, the element itself. bool gives booleans,
   * int64 gives numbers, or bigints if a number would lose digits.
   */
  toArray(): NestedArray {
    const { dtype, shape } = this;
    return nestedArray(this.data(), shape, dtype);
  }

  /**
   * The value of a tensor with one element as a number; bool gives 0 or 1.
   *
   * @throws RangeError if there is not exactly one element, or an int64 does not fit in a number
   */
  item(): number {
    if (this.numel !== 1) {
      throw new RangeError(
        `item: needs a tensor with one element, got shape ${formatShape(this.shape)}; ` +
          'use data() or toArray()',
      );
    }
    const value = this.data()[0] as number | bigint;
    if (typeof value === 'number') return value;
    if (!Number.isSafeInteger(Number(value))) {
      throw new RangeError(`item: ${value} does not fit in a number; use data()[0] for a bigint`);
    }
    return Number(value);
  }

  // Conversions and copies.

  /**
   * Converts to another dtype or device; shares memory if nothing changes, unless `copy` is true.
   *
   * @throws TypeError for an invalid dtype, device or option; RangeError if there is no GPU with that
   *   index; TorchError ERR_CUDA_UNAVAILABLE
   */
  to(options: ToOptions): Tensor {
    checkOptions('to', options, ['dtype', 'device', 'copy', 'nonBlocking']);
    const { dtype, device, copy = false, nonBlocking = false } = options ?? {};
    if (dtype !== undefined) checkDType('to', 'dtype', dtype);
    checkBoolean('to', 'copy', copy);
    checkBoolean('to', 'nonBlocking', nonBlocking);
    return callTensor('aten::to.dtype_layout', this, {
      dtype: dtype ?? this.dtype,
      device: device === undefined ? this.device : checkDevice('to', 'device', device),
      copy,
      non_blocking: nonBlocking,
    });
  }

  /** `to({ device: 'cpu' })` */
  cpu(): Tensor {
    return this.to({ device: 'cpu' });
  }

  /**
   * `to({ device: 'cuda' })`, or to the GPU with this index.
   * @throws TorchError ERR_CUDA_UNAVAILABLE; TypeError, RangeError if `index` is not a GPU's
   */
  cuda(index?: number): Tensor {
    if (index === undefined) return this.to({ device: 'cuda' });
    return this.to({ device: `cuda:${checkInteger('cuda', 'index', index, 0)}` });
  }

  /**
   * A copy in pinned (page-locked) memory. Copies between it and a GPU are several times as fast, and
   * asynchronous with `to({ device, nonBlocking: true })`. Returns the tensor itself if it is already
   * pinned.
   *
   * @throws TorchError ERR_CUDA_UNAVAILABLE without a GPU; TypeError if the tensor is not on the CPU
   */
  pinMemory(): Tensor {
    needCuda('pinMemory', 'pinned memory is for copies to a GPU, and');
    if (this.device !== 'cpu') {
      throw new TypeError(
        `pinMemory: only tensors on the CPU can be pinned, this one is on ${this.device}`,
      );
    }
    return callTensor('aten::pin_memory', this);
  }

  /** Whether the tensor is in pinned memory; see {@link Tensor.pinMemory}. */
  get isPinned(): boolean {
    return (
      this.device === 'cpu' && cudaState().devices > 0 && (call('aten::is_pinned', this) as boolean)
    );
  }

  /** Converts to float32. */
  float(): Tensor {
    return callTensor('aten::to.dtype', this, 'float32');
  }

  /** Converts to float64. */
  double(): Tensor {
    return callTensor('aten::to.dtype', this, 'float64');
  }

  /** Converts to float16. */
  half(): Tensor {
    return callTensor('aten::to.dtype', this, 'float16');
  }

  /** Converts to bfloat16. */
  bfloat16(): Tensor {
    return callTensor('aten::to.dtype', this, 'bfloat16');
  }

  /** Converts to int64; fractions are truncated. */
  long(): Tensor {
    return callTensor('aten::to.dtype', this, 'int64');
  }

  /** Converts to int32; fractions are truncated. */
  int(): Tensor {
    return callTensor('aten::to.dtype', this, 'int32');
  }

  /** Converts to bool: true where non-zero. */
  bool(): Tensor {
    return callTensor('aten::to.dtype', this, 'bool');
  }

  /** A differentiable copy. */
  clone(): Tensor {
    return callTensor('aten::clone', this);
  }

  /** A tensor that shares the memory but is detached from the autograd graph. */
  detach(): Tensor {
    return callTensor('aten::detach', this);
  }

  // Autograd.

  /** Whether operations on this tensor are recorded for gradients. */
  get requiresGrad(): boolean {
    return native().requiresGrad(this);
  }

  /** @throws TypeError if the dtype is not floating-point */
  set requiresGrad(value: boolean) {
    checkBoolean('requiresGrad', 'value', value);
    if (value) checkCanRequireGrad('requiresGrad', this.dtype);
    explained(
      () => native().setRequiresGrad(this, value),
      () => {
        if (!value && !this.isLeaf) {
          throw new TypeError(
            'requiresGrad: only a leaf can stop requiring gradients, but this tensor was computed ' +
              `by ${this.gradFn ?? 'an operation'}; use detach()`,
          );
        }
      },
    );
  }

  /** Sets {@link Tensor.requiresGrad}; returns this tensor. */
  requiresGrad_(value = true): Tensor {
    this.requiresGrad = value;
    return this;
  }

  /** The gradient accumulated by `backward`, or null. */
  get grad(): Tensor | null {
    return native().grad(this);
  }

  /** @throws TypeError, RangeError unless it is null or has this tensor's shape, dtype, device */
  set grad(value: Tensor | null) {
    if (value !== null) {
      checkTensor('grad', 'value', value);
      if (value === this) throw new TypeError('grad: a tensor cannot be its own gradient');
      const wanted = `${formatShape(this.shape)} of ${this.dtype} on ${this.device}`;
      const given = `${formatShape(value.shape)} of ${value.dtype} on ${value.device}`;
      if (given !== wanted) {
        throw new RangeError(`grad: the gradient of this tensor must be ${wanted}, got ${given}`);
      }
    }
    native().setGrad(this, value);
  }

  /** Whether the tensor was not computed by a recorded operation; only leaves get a {@link grad}. */
  get isLeaf(): boolean {
    return native().isLeaf(this);
  }

  /** Name of the operation that computed the tensor, such as `AddBackward0`, or null. */
  get gradFn(): string | null {
    return native().gradFunctionName(this);
  }

  /**
   * Computes the gradients of this tensor with respect to all leaves and adds them to their
   * {@link grad}.
   *
   * @throws TypeError if nothing requires gradients; RangeError if the tensor has several elements
   *   and `gradient` is missing, or shapes differ
   */
  backward(options: BackwardOptions = {}): void {
    runBackward(this, options);
  }

  /**
   * Calls `hook` with this tensor's gradient in every backward pass; if it returns a tensor, that
   * replaces the gradient. It runs on the thread of the event loop, also in
   * {@link Tensor.backwardAsync}.
   *
   * @throws TypeError if the tensor does not require gradients
   */
  registerHook(hook: (gradient: Tensor) => Tensor | null | undefined | void): RemovableHook {
    return registerGradientHook(this, hook);
  }

  /** {@link backward} off the event loop. Do not use the graph or the leaves before it settles. */
  backwardAsync(options: BackwardOptions = {}): Promise<void> {
    return runBackwardAsync(this, options);
  }

  // Disposal.

  /** Frees the memory now, unless other tensors share it; has no effect if called again. */
  dispose(): void {
    releaseSlot(this);
    // A long-lived scope must not accumulate disposed tensors.
    currentScope()?.forget(this);
  }

  /** {@link Tensor.dispose} at the end of a block: `using x = tensor([1, 2])`. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  /** The text that PyTorch prints; large tensors are summarized. */
  override toString(): string {
    return this.isDisposed ? 'tensor(disposed)' : formatTensor(this);
  }

  /** The description in error messages: `Tensor [2, 3] of float32`. @internal */
  [description](className: string): string {
    if (this.isDisposed) return `disposed ${className}`;
    return `${className} ${formatShape(this.shape)} of ${this.dtype}`;
  }

  /** The output of `console.log`: {@link Tensor.toString}. */
  [inspect](): string {
    return this.toString();
  }
}

// The other methods: the interface declares them, and addMethods adds them to the prototype.
export interface Tensor extends TensorMethods {}
addMethods(Tensor.prototype);

useNewTensor(() => new (Tensor as unknown as new () => Tensor)());
