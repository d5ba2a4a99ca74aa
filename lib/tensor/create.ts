/** Functions that create tensors. All have the same options, {@link CreateOptions}. */
import {
  checkBoolean,
  checkInteger,
  checkOptions,
  describe,
  orDefault,
} from '../runtime/arguments.js';
import {
  checkCanRequireGrad,
  checkIndex,
  checkScalar,
  checkShape,
  checkTensor,
  elementCount,
  formatShape,
  type Scalar,
} from './check.js';
import { checkDevice, type Device, type DeviceChoice } from './device.js';
import { callTensor, FloatScalar, native } from './dispatch.js';
import { byteSize, checkDType, dtypeOfTypedArray, type DType, type TensorSource } from './dtype.js';
import { flatten, type ReadonlyNestedArray } from './nested.js';
import { isTensor } from './slot.js';
import type { Tensor } from './tensor.js';

export { cat, stack } from './join.js';

/** Options of all functions that create tensors. */
export interface CreateOptions {
  /** Element type. The default depends on the function. */
  dtype?: DType;
  /** `'cpu'`, `'cuda'`, `'cuda:1'` or `'auto'`. Default `'cpu'`. */
  device?: DeviceChoice;
  /** Whether gradients are recorded. Default false; only for floating-point types. */
  requiresGrad?: boolean;
}

/** Options of {@link tensor}. */
export interface TensorOptions extends CreateOptions {
  /** Shape of a flat typed array. Default: one dimension. */
  shape?: readonly number[];
}

/** One size or an array of sizes. */
export type Shape = number | readonly number[];

const createKeys = ['dtype', 'device', 'requiresGrad'];

/** Checks the common options and returns them as named arguments of the schema. */
function layout(owner: string, options: CreateOptions, fallback: DType | null) {
  checkOptions(owner, options, createKeys);
  const { dtype, requiresGrad = false } = options;
  if (dtype !== undefined) checkDType(owner, 'dtype', dtype);
  const device = checkDevice(owner, 'device', orDefault(options.device, 'cpu'));
  checkBoolean(owner, 'requiresGrad', requiresGrad);
  return { dtype: dtype ?? fallback, device };
}

function finished(owner: string, made: Tensor, options: CreateOptions): Tensor {
  if (options.requiresGrad !== true) return made;
  try {
    checkCanRequireGrad(owner, made.dtype);
    made.requiresGrad = true;
    return made;
  } catch (error) {
    made.dispose();
    throw error;
  }
}

/**
 * Creates a tensor with a copy of `data`.
 *
 * Nested arrays: the dtype is float32 for numbers, bool if every leaf is a boolean, int64 if every
 * leaf is a bigint, or `dtype`; numbers in integer tensors must be integers in range. Typed arrays
 * keep their type (`Float64Array` → float64, `BigInt64Array` → int64, `Uint8Array` → uint8), or
 * are converted to `dtype` as by {@link Tensor.to}.
 *
 * @throws TypeError, RangeError that names the element: `data[1] has 3 elements, data[0] has 2`
 */
export function tensor(
  data: ReadonlyNestedArray | TensorSource,
  options: TensorOptions = {},
): Tensor {
  checkOptions('tensor', options, [...createKeys, 'shape']);
  const { dtype, requiresGrad = false } = options;
  if (dtype !== undefined) checkDType('tensor', 'dtype', dtype);
  const device =
    options.device === undefined ? undefined : checkDevice('tensor', 'device', options.device);
  checkBoolean('tensor', 'requiresGrad', requiresGrad);
  if (isTensor(data)) {
    throw new TypeError('tensor: data is already a Tensor; copy it with clone() or to()');
  }
  const made = ArrayBuffer.isView(data)
    ? fromTypedArray(data, options.shape)
    : fromNested(data, options);
  return finished('tensor', converted(made, dtype, device), options);
}

function fromTypedArray(data: ArrayBufferView, shape: readonly number[] | undefined): Tensor {
  const kind = dtypeOfTypedArray('tensor', data);
  const count = data.byteLength / byteSize(kind);
  const sizes = shape === undefined ? [count] : checkShape('tensor', shape);
  if (elementCount(sizes) !== count) {
    throw new RangeError(
      `tensor: shape ${formatShape(sizes)} has ${elementCount(sizes)} elements, data has ${count}`,
    );
  }
  return native().fromBytes(data, sizes, kind);
}

function fromNested(data: ReadonlyNestedArray, options: TensorOptions): Tensor {
  if (options.shape !== undefined) {
    throw new TypeError('tensor: shape is for typed arrays; nested arrays have their own');
  }
  const kind = typeof data;
  if (!Array.isArray(data) && kind !== 'number' && kind !== 'bigint' && kind !== 'boolean') {
    throw new TypeError(
      'tensor: data must be a number, bigint, boolean, nested arrays of them or a typed array, ' +
        `got ${describe(data)}`,
    );
  }
  const flat = flatten('tensor', data, options.dtype ?? null);
  return native().fromBytes(flat.values, flat.shape, flat.dtype);
}

/** `made` as `dtype` on `device`; disposes of the original if it was converted. */
function converted(made: Tensor, dtype?: DType, device?: Device): Tensor {
  const sameType = dtype === undefined || dtype === made.dtype;
  if (sameType && (device === undefined || device === 'cpu')) return made;
  try {
    return made.to({
      ...(dtype === undefined ? {} : { dtype }),
      ...(device === undefined ? {} : { device }),
    });
  } finally {
    made.dispose();
  }
}

/**
 * Creates a tensor with a copy of raw little-endian bytes in row-major order, as returned by
 * {@link Tensor.bytes} and stored in safetensors files. For bool, every non-zero byte is true.
 *
 * @throws RangeError if the number of bytes does not match the shape
 */
export function fromBytes(
  bytes: ArrayBufferView | ArrayBuffer,
  shape: readonly number[],
  dtype: DType,
): Tensor {
  const view = bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : bytes;
  if (!ArrayBuffer.isView(view)) {
    throw new TypeError(
      `fromBytes: bytes must be a typed array or an ArrayBuffer, got ${describe(bytes)}`,
    );
  }
  const sizes = checkShape('fromBytes', shape);
  checkDType('fromBytes', 'dtype', dtype);
  const needed = elementCount(sizes) * byteSize(dtype);
  if (view.byteLength !== needed) {
    throw new RangeError(
      `fromBytes: shape ${formatShape(sizes)} of ${dtype} needs ${needed} bytes, ` +
        `got ${view.byteLength}`,
    );
  }
  if (dtype !== 'bool') return native().fromBytes(view, sizes, dtype);
  // Bytes other than 0 and 1 are not valid bools for native code.
  const raw = native().fromBytes(view, sizes, 'uint8');
  try {
    return raw.ne(0);
  } finally {
    raw.dispose();
  }
}

/**
 * A tensor filled with 0. Default dtype float32.
 *
 * @throws TypeError, RangeError for an invalid shape or option; TorchError ERR_CUDA_UNAVAILABLE,
 *   ERR_OUT_OF_MEMORY
 */
export function zeros(shape: Shape, options: CreateOptions = {}): Tensor {
  const sizes = checkShape('zeros', shape);
  const named = layout('zeros', options, 'float32');
  return finished('zeros', callTensor('aten::zeros', sizes, named), options);
}

/** A tensor filled with 1. Default dtype float32. */
export function ones(shape: Shape, options: CreateOptions = {}): Tensor {
  const sizes = checkShape('ones', shape);
  const named = layout('ones', options, 'float32');
  return finished('ones', callTensor('aten::ones', sizes, named), options);
}

/** A tensor with uninitialized memory. Default dtype float32. */
export function empty(shape: Shape, options: CreateOptions = {}): Tensor {
  const sizes = checkShape('empty', shape);
  const named = layout('empty', options, 'float32');
  return finished('empty', callTensor('aten::empty.memory_format', sizes, named), options);
}

/** A tensor filled with `value`. Default dtype: float32 (number), int64 (bigint), bool (boolean). */
export function full(shape: Shape, value: Scalar, options: CreateOptions = {}): Tensor {
  const sizes = checkShape('full', shape);
  checkScalar('full', 'value', value);
  const kinds: Record<string, DType> = { bigint: 'int64', boolean: 'bool' };
  const named = layout('full', options, kinds[typeof value] ?? 'float32');
  return finished('full', callTensor('aten::full', sizes, value, named), options);
}

/**
 * The numbers `start`, `start + step`, … below `end`. Default dtype int64 if all three are integers,
 * else float32, as in PyTorch. `arange(end)`, `arange(start, end)`, `arange(start, end, step)`.
 */
export function arange(end: Scalar, options?: CreateOptions): Tensor;
export function arange(start: Scalar, end: Scalar, options?: CreateOptions): Tensor;
export function arange(start: Scalar, end: Scalar, step: Scalar, options?: CreateOptions): Tensor;
export function arange(...args: (Scalar | CreateOptions | undefined)[]): Tensor {
  const numbers = [...args];
  const last = numbers.at(-1);
  let options: CreateOptions = {};
  if (last === undefined || (typeof last === 'object' && !(last instanceof FloatScalar))) {
    options = (numbers.pop() as CreateOptions | undefined) ?? {};
  }
  if (numbers.length < 1 || numbers.length > 3) {
    throw new TypeError(
      `arange: pass (end), (start, end) or (start, end, step), got ${numbers.length} numbers`,
    );
  }
  const [start, end, step] = (
    numbers.length === 1 ? [0, numbers[0], 1] : [numbers[0], numbers[1], numbers[2] ?? 1]
  ) as [Scalar, Scalar, Scalar];
  for (const [name, value] of Object.entries({ start, end, step })) {
    checkScalar('arange', name, value);
  }
  checkArangeRange(numberOf(start), numberOf(end), numberOf(step));
  const named = layout('arange', options, null);
  return finished(
    'arange',
    callTensor('aten::arange.start_step', start, end, step, named),
    options,
  );
}

function checkArangeRange(start: number, end: number, step: number): void {
  if (!Number.isFinite(start) || !Number.isFinite(end) || !Number.isFinite(step)) {
    throw new RangeError(
      `arange: start, end and step must be finite, got ${start}, ${end} and ${step}`,
    );
  }
  if (step === 0) throw new RangeError('arange: step must not be 0');
  if ((end - start) / step < 0) {
    throw new RangeError(`arange: step ${step} has the wrong sign to get from ${start} to ${end}`);
  }
}

function numberOf(value: Scalar): number {
  return Number(value instanceof FloatScalar ? value.value : value);
}

/** `steps` evenly spaced numbers from `start` to `end`, inclusive. Default dtype float32. */
export function linspace(
  start: number,
  end: number,
  steps: number,
  options: CreateOptions = {},
): Tensor {
  checkScalar('linspace', 'start', start);
  checkScalar('linspace', 'end', end);
  checkInteger('linspace', 'steps', steps, 0);
  const named = layout('linspace', options, 'float32');
  return finished('linspace', callTensor('aten::linspace', start, end, steps, named), options);
}

/** The identity matrix `[rows, columns]`; `columns` defaults to `rows`. Default dtype float32. */
export function eye(rows: number, columns = rows, options: CreateOptions = {}): Tensor {
  checkInteger('eye', 'rows', rows, 0);
  checkInteger('eye', 'columns', columns, 0);
  const named = layout('eye', options, 'float32');
  return finished('eye', callTensor('aten::eye.m', rows, columns, named), options);
}

/** Uniform random numbers in [0, 1), from the environment's generator. Default dtype float32. */
export function rand(shape: Shape, options: CreateOptions = {}): Tensor {
  const sizes = checkShape('rand', shape);
  const named = layout('rand', options, 'float32');
  return finished('rand', callTensor('aten::rand.generator', sizes, named), options);
}

/** Standard normal random numbers, from the environment's generator. Default dtype float32. */
export function randn(shape: Shape, options: CreateOptions = {}): Tensor {
  const sizes = checkShape('randn', shape);
  const named = layout('randn', options, 'float32');
  return finished('randn', callTensor('aten::randn.generator', sizes, named), options);
}

/** Random integers from `low` up to, but not including, `high`. Default dtype int64. */
export function randint(
  low: number,
  high: number,
  shape: Shape,
  options: CreateOptions = {},
): Tensor {
  checkIndex('randint', 'low', low);
  checkIndex('randint', 'high', high);
  if (low >= high) {
    throw new RangeError(`randint: low must be below high, got ${low} and ${high}`);
  }
  const sizes = checkShape('randint', shape);
  const named = layout('randint', options, 'int64');
  const made = callTensor('aten::randint.low_generator', low, high, sizes, named);
  return finished('randint', made, options);
}

/** The integers 0 … n-1 in random order. Default dtype int64. */
export function randperm(n: number, options: CreateOptions = {}): Tensor {
  checkInteger('randperm', 'n', n, 0);
  const named = layout('randperm', options, 'int64');
  return finished('randperm', callTensor('aten::randperm.generator', n, named), options);
}

/** A tensor filled with 0; shape, and by default dtype and device, are those of `like`. */
export function zerosLike(like: Tensor, options: CreateOptions = {}): Tensor {
  return filledLike('zerosLike', 'aten::zeros_like', like, options);
}

/** A tensor filled with 1; shape, and by default dtype and device, are those of `like`. */
export function onesLike(like: Tensor, options: CreateOptions = {}): Tensor {
  return filledLike('onesLike', 'aten::ones_like', like, options);
}

/** A tensor filled with `value`; shape, and by default dtype and device, are those of `like`. */
export function fullLike(like: Tensor, value: Scalar, options: CreateOptions = {}): Tensor {
  checkScalar('fullLike', 'value', value);
  return filledLike('fullLike', 'aten::full_like', like, options, value);
}

/** An uninitialized tensor; shape, and by default dtype and device, are those of `like`. */
export function emptyLike(like: Tensor, options: CreateOptions = {}): Tensor {
  return filledLike('emptyLike', 'aten::empty_like', like, options);
}

/** Uniform random numbers in [0, 1); shape, and by default dtype and device, are those of `like`. */
export function randLike(like: Tensor, options: CreateOptions = {}): Tensor {
  return filledLike('randLike', 'aten::rand_like.generator', like, options);
}

/** Standard normal random numbers; shape, and by default dtype and device, are those of `like`. */
export function randnLike(like: Tensor, options: CreateOptions = {}): Tensor {
  return filledLike('randnLike', 'aten::randn_like.generator', like, options);
}

function filledLike(
  owner: string,
  op: string,
  like: Tensor,
  options: CreateOptions,
  ...values: Scalar[]
): Tensor {
  checkTensor(owner, 'like', like);
  checkOptions(owner, options, createKeys);
  const { dtype, device } = { dtype: like.dtype, device: like.device, ...options };
  const named = layout(owner, { ...options, dtype, device }, null);
  return finished(owner, callTensor(op, like, ...values, named), options);
}
