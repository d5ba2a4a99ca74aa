/**
 * The fast path for calling an op: arguments that are tensors, numbers, booleans or null are written
 * to memory that native code reads (`native/bind/call_frame.h`), because a Node-API call for each
 * argument and result would take a significant part of the time of a small op.
 */
import type { BoundOp } from './native.js';
import { slotOf } from './slot.js';

const maxArguments = 15;

// Must match native/bind/call_frame.h.
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

/** Sets the memory that native code reads. @internal */
export function shareCallFrame(buffer: ArrayBuffer): void {
  values = new Float64Array(buffer, 0, maxArguments + 1);
  kinds = new Uint8Array(buffer, values.byteLength, maxArguments + 1);
}

/** Writes arguments to the frame; returns false if one is of another kind. */
function writeArguments(args: readonly unknown[]): boolean {
  const count = args.length;
  if (count > maxArguments) return false;
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

/** Calls an op, using the frame if op and arguments allow it. @internal */
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
