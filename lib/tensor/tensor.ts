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
   Tensor is also an interface, which declares the methods that addMethods puts on its prototype. */

/**
 * Whether a scope may dispose of a tensor. As symbols, which no clone can hold, these also make
 * `structuredClone` and `postMessage` fail, with this text, where they would give an object without
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
  /** Copies even if nothing changes. Default false. */
  copy?: boolean;
  /**
   * Does not wait for a copy between the CPU and a GPU, if the tensor on the CPU is pinned. What comes to
   * the CPU that way must not be read before `cuda.synchronize()`. Default false.
   */
  nonBlocking?: boolean;
}

/**
 * An array of numbers of any shape, on the CPU or a GPU, with automatic differentiation.
 *
 * Names and meanings are PyTorch's; a trailing underscore changes the tensor in place. Tensors
 * come from functions such as {@link tensor}, {@link zeros} or from other tensors, never from
 * `new`: native code makes the objects, whose memory it holds until {@link Tensor.dispose}, the
 * end of a scope, or the garbage collector. They cannot be cloned or sent to another thread
 * (`structuredClone` and `postMessage` throw a DataCloneError): send the elements, `data()`.
 *
 * What a tensor is, its conversions, gradients and life are here; its other methods are in `methods/`,
 * a file for each topic.
 */
export class Tensor extends SlotHolder {
  // A property of the object itself: clones look at no other.
  private lifetime: symbol;

  /** For `makeTensor` only: an object that `new` made elsewhere has no memory behind it. */
  protected constructor() {
    super();
    this.lifetime = scoped;
    currentScope()?.add(this);
  }

  /** True for tensors that outlive all scopes. Set by `keep`. @internal */
  get kept(): boolean {
    return this.lifetime === outliving;
  }

  set kept(kept: boolean) {
    this.lifetime = kept ? outliving : scoped;
  }

  // What it is.

  /** The sizes of the dimensions; `[]` for a single number. */
  get shape(): readonly number[] {
    return native().shape(this);
  }

  /** How far apart neighbours along each dimension are in memory, in elements. */
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

  /** Whether the elements lie in row-major order without gaps. */
  get isContiguous(): boolean {
    return native().isContiguous(this);
  }

  /**
   * Whether only some rows are stored, as in the gradient of an embedding with `sparseGradient`;
   * `ops.aten._to_dense(tensor)` fills in the zeros.
   */
  get isSparse(): boolean {
    return native().isSparse(this);
  }

  /** Whether {@link Tensor.dispose} was called; every other use throws ERR_DISPOSED then. */
  get isDisposed(): boolean {
    return slotOf(this) <= 0;
  }

  // Its elements.

  /**
   * A copy of the elements in row-major order, whatever the strides. float16 and bfloat16 come
   * as Float32Array, int64 as BigInt64Array, bool as Uint8Array of 0 and 1.
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

  /** A copy of the elements' bytes in row-major order, as the dtype stores them. */
  bytes(): Uint8Array {
    return new Uint8Array(native().toBytes(this));
  }

  /**
   * The elements as nested arrays; of a 0-dim tensor the element itself. bool gives booleans,
   * int64 gives numbers, and bigints where a number would lose digits.
   */
  toArray(): NestedArray {
    const { dtype, shape } = this;
    return nestedArray(this.data(), shape, dtype);
  }

  /**
   * The only element as a number; bool gives 0 or 1.
   *
   * @throws RangeError when there is not exactly one, or an int64 does not fit in a number
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
   * Another dtype or device; shares the memory when nothing changes, unless `copy`.
   *
   * @throws TypeError for a dtype, device or option that is none; RangeError for the number of a GPU
   *   that is not there; TorchError ERR_CUDA_UNAVAILABLE
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
   * `to({ device: 'cuda' })`, or to the GPU of a number.
   * @throws TorchError ERR_CUDA_UNAVAILABLE; TypeError, RangeError for what is no number of a GPU
   */
  cuda(index?: number): Tensor {
    if (index === undefined) return this.to({ device: 'cuda' });
    return this.to({ device: `cuda:${checkInteger('cuda', 'index', index, 0)}` });
  }

  /**
   * A copy in pinned memory, which the system never moves: a GPU copies from and to it several times
   * as fast, and with `to({ device, nonBlocking: true })` while the program goes on. The tensor itself
   * if it is pinned already.
   *
   * @throws TorchError ERR_CUDA_UNAVAILABLE without a GPU, which alone could make use of it; TypeError
   *   unless it is on the CPU
   */
  pinMemory(): Tensor {
    needCuda('pinMemory', 'pinned memory is for copies to a GPU, and');
    if (this.device !== 'cpu') {
      throw new TypeError(
        `pinMemory: only memory of the CPU can be pinned, this is ${this.device}`,
      );
    }
    return callTensor('aten::pin_memory', this);
  }

  /** Whether the elements lie in pinned memory; see {@link Tensor.pinMemory}. */
  get isPinned(): boolean {
    return (
      this.device === 'cpu' && cudaState().devices > 0 && (call('aten::is_pinned', this) as boolean)
    );
  }

  /** As float32. */
  float(): Tensor {
    return callTensor('aten::to.dtype', this, 'float32');
  }

  /** As float64. */
  double(): Tensor {
    return callTensor('aten::to.dtype', this, 'float64');
  }

  /** As float16. */
  half(): Tensor {
    return callTensor('aten::to.dtype', this, 'float16');
  }

  /** As bfloat16. */
  bfloat16(): Tensor {
    return callTensor('aten::to.dtype', this, 'bfloat16');
  }

  /** As int64. Fractions are cut off. */
  long(): Tensor {
    return callTensor('aten::to.dtype', this, 'int64');
  }

  /** As int32. Fractions are cut off. */
  int(): Tensor {
    return callTensor('aten::to.dtype', this, 'int32');
  }

  /** As bool: true where non-zero. */
  bool(): Tensor {
    return callTensor('aten::to.dtype', this, 'bool');
  }

  /** A copy in memory of its own; gradients flow through it. */
  clone(): Tensor {
    return callTensor('aten::clone', this);
  }

  /** The same memory, outside of the autograd graph. */
  detach(): Tensor {
    return callTensor('aten::detach', this);
  }

  // Autograd.

  /** Whether operations on this tensor are recorded for gradients. */
  get requiresGrad(): boolean {
    return native().requiresGrad(this);
  }

  /** @throws TypeError for integers and bools */
  set requiresGrad(value: boolean) {
    checkBoolean('requiresGrad', 'value', value);
    if (value) checkCanRequireGrad('requiresGrad', this.dtype);
    explained(
      () => native().setRequiresGrad(this, value),
      () => {
        if (!value && !this.isLeaf) {
          throw new TypeError(
            'requiresGrad: only a leaf can stop requiring gradients, this tensor was computed ' +
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

  /** The gradient that `backward` has accumulated, or null. */
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
        throw new RangeError(`grad: a gradient here must be ${wanted}, got ${given}`);
      }
    }
    native().setGrad(this, value);
  }

  /** Whether the tensor was not computed by a recorded operation; leaves get a {@link grad}. */
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
   * @throws TypeError without gradients to compute; RangeError when the tensor has several
   *   elements and no `gradient` is given, or the shapes differ
   */
  backward(options: BackwardOptions = {}): void {
    runBackward(this, options);
  }

  /**
   * Calls `hook` with this tensor's gradient in every backward pass; what it returns takes the
   * gradient's place. It runs on the event loop's thread, also in {@link Tensor.backwardAsync}.
   *
   * @throws TypeError if the tensor does not require gradients
   */
  registerHook(hook: (gradient: Tensor) => Tensor | null | undefined | void): RemovableHook {
    return registerGradientHook(this, hook);
  }

  /** {@link backward} off the event loop. Use neither the graph nor the leaves before it settles. */
  backwardAsync(options: BackwardOptions = {}): Promise<void> {
    return runBackwardAsync(this, options);
  }

  // Life.

  /** Gives the memory back now, unless other tensors share it. Harmless when repeated. */
  dispose(): void {
    releaseSlot(this);
    // A long scope must not collect the shells of tensors that are gone.
    currentScope()?.forget(this);
  }

  /** {@link Tensor.dispose} at the end of a block: `using x = tensor([1, 2])`. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  /** As PyTorch prints tensors; large ones are summarised. */
  override toString(): string {
    return this.isDisposed ? 'tensor(disposed)' : formatTensor(this);
  }

  /** What error messages call it: `Tensor [2, 3] of float32`. @internal */
  [description](className: string): string {
    if (this.isDisposed) return `disposed ${className}`;
    return `${className} ${formatShape(this.shape)} of ${this.dtype}`;
  }

  /** What `console.log` shows: {@link Tensor.toString}. */
  [inspect](): string {
    return this.toString();
  }
}

// Its other methods: the interface declares them, and addMethods puts them on the prototype.
export interface Tensor extends TensorMethods {}
addMethods(Tensor.prototype);

useNewTensor(() => new (Tensor as unknown as new () => Tensor)());
