/** Converts nested JS arrays to flat typed arrays and back. */
import { describe } from '../runtime/arguments.js';
import { integerRange, isFloatingPoint, type DType, type TensorData } from './dtype.js';
import { isTensor } from './slot.js';

/** A number, bigint or boolean, or arrays of them to any depth. */
export type NestedArray = number | bigint | boolean | NestedArray[];
/** {@link NestedArray} as an argument, which may be read-only. */
export type ReadonlyNestedArray = number | bigint | boolean | readonly ReadonlyNestedArray[];

/** Result of {@link flatten}: `values` in the typed array of `dtype`. */
export interface FlatData {
  values: TensorData;
  shape: number[];
  /** float32 instead of float16 and bfloat16, for which there is no typed array. */
  dtype: DType;
}

type Leaf = number | bigint | boolean;

const maximumDepth = 64;

/**
 * Flattens nested arrays in row-major order.
 *
 * @param dtype of the result; null: bool if every leaf is a boolean, int64 if every leaf is a bigint,
 *   else float32
 * @throws TypeError, RangeError with the path of an invalid leaf or a row of the wrong length
 */
export function flatten(owner: string, data: ReadonlyNestedArray, dtype: DType | null): FlatData {
  const shape = shapeOf(owner, data);
  const wanted = dtype ?? inferDType(owner, data, shape);
  const stored = wanted === 'float16' || wanted === 'bfloat16' ? 'float32' : wanted;
  const count = shape.reduce((product, size) => product * size, 1);
  const values = emptyArray(stored, count);
  const store = storeFor(owner, stored, values);
  let next = 0;
  forEachLeaf(owner, data, shape, (value, path) => store(next++, value, path));
  return { values, shape, dtype: stored };
}

/** Visits the values at the depth of `shape`; checks that every row matches `shape`. */
function forEachLeaf(
  owner: string,
  data: unknown,
  shape: readonly number[],
  visit: (value: unknown, path: readonly number[]) => void,
): void {
  const path: number[] = [];
  const walk = (value: unknown, depth: number): void => {
    if (depth === shape.length) {
      visit(value, path);
      return;
    }
    const row = checkRow(owner, value, shape, depth, path);
    for (let index = 0; index < row.length; index++) {
      path[depth] = index;
      path.length = depth + 1;
      walk(row[index], depth + 1);
    }
    path.length = depth;
  };
  walk(data, 0);
}

/** The lengths along the first elements; forEachLeaf checks that all others are equal. */
function shapeOf(owner: string, data: unknown): number[] {
  const shape: number[] = [];
  for (let value = data; Array.isArray(value); value = value[0] as unknown) {
    if (shape.length === maximumDepth) {
      throw new RangeError(`${owner}: data is nested more than ${maximumDepth} arrays deep`);
    }
    shape.push(value.length);
    if (value.length === 0) break;
  }
  return shape;
}

function pathName(path: readonly number[]): string {
  return `data${path.map((index) => `[${index}]`).join('')}`;
}

function checkRow(
  owner: string,
  value: unknown,
  shape: readonly number[],
  depth: number,
  path: readonly number[],
): readonly unknown[] {
  const length = shape[depth] as number;
  const first = pathName(path.map(() => 0));
  if (!Array.isArray(value)) {
    throw new TypeError(
      `${owner}: ${pathName(path)} is ${describeLeaf(value)}, ${first} is an array of ${length}; ` +
        'all rows must have the same nesting depth',
    );
  }
  if (value.length !== length) {
    throw new RangeError(
      `${owner}: ${pathName(path)} has ${elements(value.length)}, ${first} has ${length}; ` +
        'all rows must have the same length; pad the shorter ones',
    );
  }
  return value;
}

const elements = (count: number): string => (count === 1 ? '1 element' : `${count} elements`);

function describeLeaf(value: unknown): string {
  if (isTensor(value)) return 'a Tensor (use stack or cat)';
  if (ArrayBuffer.isView(value))
    return `${describe(value)} (use Array.from, or reshape a flat one)`;
  return describe(value);
}

/** The dtype for the type of the leaves; all must have the same type. */
function inferDType(owner: string, data: unknown, shape: readonly number[]): DType {
  let kind: string | undefined;
  let firstPath = '';
  forEachLeaf(owner, data, shape, (value, path) => {
    checkLeafKind(owner, value, path);
    if (kind === undefined) {
      kind = typeof value;
      firstPath = pathName(path);
    } else if (typeof value !== kind) {
      throw new TypeError(
        `${owner}: ${pathName(path)} is a ${typeof value}, ${firstPath} a ${kind}; ` +
          'leaves must have one type, or pass a dtype',
      );
    }
  });
  return kind === 'boolean' ? 'bool' : kind === 'bigint' ? 'int64' : 'float32';
}

function checkLeafKind(owner: string, value: unknown, path: readonly number[]): void {
  if (typeof value !== 'number' && typeof value !== 'bigint' && typeof value !== 'boolean') {
    throw new TypeError(
      `${owner}: ${pathName(path)} must be a number, bigint or boolean, got ${describeLeaf(value)}`,
    );
  }
}

function emptyArray(dtype: DType, count: number): TensorData {
  switch (dtype) {
    case 'float64':
      return new Float64Array(count);
    case 'int8':
      return new Int8Array(count);
    case 'int16':
      return new Int16Array(count);
    case 'int32':
      return new Int32Array(count);
    case 'int64':
      return new BigInt64Array(count);
    case 'uint8':
    case 'bool':
      return new Uint8Array(count);
    default:
      return new Float32Array(count);
  }
}

type Store = (at: number, value: unknown, path: readonly number[]) => void;

/** Writes one checked leaf into `values`. */
function storeFor(owner: string, dtype: DType, values: TensorData): Store {
  const fault = (path: readonly number[], wanted: string, value: unknown): TypeError =>
    new TypeError(
      `${owner}: ${pathName(path)} must be ${wanted} for ${dtype}, got ${describeLeaf(value)}`,
    );
  if (values instanceof BigInt64Array) {
    return (at, value, path) => {
      values[at] = BigInt(checkInteger(dtype, value, path, fault));
    };
  }
  if (isFloatingPoint(dtype)) {
    return (at, value, path) => {
      if (typeof value === 'bigint') throw fault(path, 'a number (use Number(x))', value);
      if (typeof value !== 'number' && typeof value !== 'boolean') {
        throw fault(path, 'a number', value);
      }
      values[at] = Number(value);
    };
  }
  if (dtype === 'bool') {
    return (at, value, path) => {
      if (value !== true && value !== false && value !== 0 && value !== 1) {
        throw fault(path, 'true, false, 1 or 0', value);
      }
      values[at] = Number(value);
    };
  }
  return (at, value, path) => {
    values[at] = Number(checkInteger(dtype, value, path, fault));
  };
}

function checkInteger(
  dtype: DType,
  value: unknown,
  path: readonly number[],
  fault: (path: readonly number[], wanted: string, value: unknown) => TypeError,
): Leaf {
  const [min, max] = integerRange(dtype) as readonly [bigint, bigint];
  if (typeof value === 'boolean') return value;
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    const wanted = Number.isInteger(value) ? 'a bigint beyond 2^53' : 'an integer';
    throw rangeFault(fault(path, wanted, value));
  }
  if (typeof value !== 'number' && typeof value !== 'bigint')
    throw fault(path, 'an integer', value);
  if (value < min || value > max) {
    throw rangeFault(fault(path, `from ${min} to ${max}`, value));
  }
  return value;
}

const rangeFault = (error: TypeError): RangeError => new RangeError(error.message);

/** Row-major elements as nested arrays. @internal */
export function nestedArray(
  values: TensorData,
  shape: readonly number[],
  dtype: DType,
): NestedArray {
  let next = 0;
  const build = (depth: number): NestedArray => {
    if (depth === shape.length) return leafOf(values[next++] as number | bigint, dtype);
    const row: NestedArray[] = [];
    for (let index = 0; index < (shape[depth] as number); index++) row.push(build(depth + 1));
    return row;
  };
  return build(0);
}

function leafOf(value: number | bigint, dtype: DType): Leaf {
  if (dtype === 'bool') return value !== 0;
  if (typeof value === 'number') return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
