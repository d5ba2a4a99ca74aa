/**
 * The fast path for calling an op: arguments that are tensors, numbers, booleans, strings or null are
 * written to memory that native code reads (`native/bind/call_frame.h`), because a Node-API call for each
 * argument and result would take a significant part of the time of a small op.
 */
import type { BoundOp, CallFrame, FrameCall } from './native.js';
import { slotOf } from './slot.js';

// Strings that are used once, such as texts of a user, must not fill the memory.
const mostStrings = 256;

let values = new Float64Array(0);
let kinds = new Uint8Array(0);
let numberOf: (text: string) => number;
const stringNumbers = new Map<string, number>();

// Set by native code. Variables are faster to read than properties.
let [omitted, none, tensor, number, boolean, string] = [0, 0, 0, 0, 0, 0];
let [noneResult, refused, firstArgument] = [0, 0, 0];

/**
 * Sets the memory that native code reads.
 *
 * @param frameString returns a number for a string
 * @internal
 */
export function shareCallFrame(shared: CallFrame, frameString: (text: string) => number): void {
  numberOf = frameString;
  values = new Float64Array(shared.memory, 0, shared.mostArguments);
  kinds = new Uint8Array(shared.memory, values.byteLength, shared.mostArguments);
  ({ omitted, null: none, tensor, number, boolean, string } = shared);
  ({ nullResult: noneResult, refused, firstArgument } = shared);
}

/** The number of a string; -1 for one string too many. */
function stringNumber(text: string): number {
  const known = stringNumbers.get(text);
  if (known !== undefined) return known;
  if (stringNumbers.size >= mostStrings) return -1;
  const made = numberOf(text);
  stringNumbers.set(text, made);
  return made;
}

/** Writes one argument; returns false if it is of another kind. */
function writeArgument(place: number, value: unknown): boolean {
  if (typeof value === 'object') {
    if (value === null) {
      kinds[place] = none;
      return true;
    }
    const slot = slotOf(value);
    if (slot <= 0) return false;
    kinds[place] = tensor;
    values[place] = slot;
  } else if (typeof value === 'number') {
    kinds[place] = number;
    values[place] = value;
  } else if (value === undefined) {
    kinds[place] = omitted;
  } else if (typeof value === 'boolean') {
    kinds[place] = boolean;
    values[place] = value ? 1 : 0;
  } else if (typeof value === 'string') {
    const known = stringNumber(value);
    if (known < 0) return false;
    kinds[place] = string;
    values[place] = known;
  } else {
    return false;
  }
  return true;
}

type Keywords = Readonly<Record<string, unknown>>;

/** Whether `value` is an object of arguments by their schema names. */
function isKeywords(value: unknown): value is Keywords {
  if (typeof value !== 'object' || value === null || slotOf(value) >= 0) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Writes arguments to the frame; returns false if the ordinary call is needed. */
function writeArguments({ argumentNames, positionalCount }: FrameCall, args: readonly unknown[]) {
  let given = args.length;
  if (given > positionalCount + 1) return false;
  for (let place = 0; place < given; place++) {
    const value = args[place];
    if (writeArgument(place, value)) continue;
    if (place !== given - 1 || !isKeywords(value)) return false;
    given = place;
  }
  if (given > positionalCount) return false;
  for (let place = given; place < argumentNames.length; place++) kinds[place] = omitted;
  return given === args.length || writeKeywords(argumentNames, given, args[given] as Keywords);
}

function writeKeywords(names: readonly string[], given: number, keywords: Keywords): boolean {
  for (const name in keywords) {
    const place = names.indexOf(name);
    // Unknown, or passed twice.
    if (place < given || !writeArgument(place, keywords[name])) return false;
  }
  return true;
}

/** The argument at a position in the schema, passed by position or by name. */
function argumentAt({ argumentNames }: FrameCall, args: readonly unknown[], place: number) {
  const last = args[args.length - 1];
  return isKeywords(last) && place >= args.length - 1
    ? last[argumentNames[place] as string]
    : args[place];
}

type MakeTensor = (slot: number) => unknown;

/** Calls an op, through the frame if the op and the arguments allow it. @internal */
export function callBound(op: BoundOp, args: readonly unknown[], makeTensor: MakeTensor): unknown {
  const { frame } = op;
  if (frame === undefined || !writeArguments(frame, args)) return op(...args);
  frame.call();
  const first = values[0] as number;
  if (first > noneResult && frame.resultCount === 1) return makeTensor(first);
  if (first === refused) return op(...args);
  const results: unknown[] = [];
  for (let index = 0; index < frame.resultCount; index++) {
    const result = values[index] as number;
    if (result > noneResult) results.push(makeTensor(result));
    else if (result === noneResult) results.push(null);
    else results.push(argumentAt(frame, args, firstArgument - result));
  }
  return frame.resultCount > 1 ? results : results[0];
}
