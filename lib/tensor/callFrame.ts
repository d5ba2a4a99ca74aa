/**
 * The fast way into an op: arguments that are tensors, numbers, booleans or null are written into
 * memory that native code reads (`native/bind/call_frame.h`), where each Node-API call for an
 * argument or a result would cost as much as a good part of a small op.
 */
import type { BoundOp } from './native.js';
import { slotOf } from './slot.js';

const mostArguments = 15;

// The same numbers as in native/bind/call_frame.h.
const kindEnd = 0;
const kindOmitted = 1;
const kindNull = 2;
const kindTensor = 3;
const kindNumber = 4;
const kindBoolean = 5;
const resultNull = 0;
const resultRefused = -1;
const resultFirstArgument = -2;

let values = new Float64Array(0);
let kinds = new Uint8Array(0);

/** Takes the memory that native code reads. @internal */
export function shareCallFrame(buffer: ArrayBuffer): void {
  values = new Float64Array(buffer, 0, mostArguments + 1);
  kinds = new Uint8Array(buffer, values.byteLength, mostArguments + 1);
}

/** Writes arguments into the frame; false where one is of another kind. */
function writeArguments(args: readonly unknown[]): boolean {
  const count = args.length;
  if (count > mostArguments) return false;
  for (let index = 0; index < count; index++) {
    const value = args[index];
    if (typeof value === 'object' && value !== null) {
      const slot = slotOf(value);
      if (slot <= 0) return false;
      kinds[index] = kindTensor;
      values[index] = slot;
    } else if (typeof value === 'number') {
      kinds[index] = kindNumber;
      values[index] = value;
    } else if (value === undefined) {
      kinds[index] = kindOmitted;
    } else if (typeof value === 'boolean') {
      kinds[index] = kindBoolean;
      values[index] = value ? 1 : 0;
    } else if (value === null) {
      kinds[index] = kindNull;
    } else {
      return false;
    }
  }
  kinds[count] = kindEnd;
  return true;
}

/** Calls an op, through the frame if the op and the arguments allow it. @internal */
export function callBound(
  op: BoundOp,
  args: readonly unknown[],
  makeTensor: (slot: number) => unknown,
): unknown {
  const { framed } = op;
  if (framed === undefined || !writeArguments(args)) return op(...args);
  framed();
  const result = values[0] as number;
  if (result > resultNull) return makeTensor(result);
  if (result === resultNull) return null;
  if (result === resultRefused) return op(...args);
  return args[resultFirstArgument - result];
}
