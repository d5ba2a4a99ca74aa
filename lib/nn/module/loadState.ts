import { TorchError } from '../../runtime/errors.js';
import {
  checkBoolean,
  checkOptions,
  checkString,
  describe,
  orDefault,
} from '../../runtime/arguments.js';
import { noGrad } from '../../tensor/autograd.js';
import { formatShape } from '../../tensor/check.js';
import type { Device } from '../../tensor/device.js';
import { native } from '../../tensor/dispatch.js';
import { isFloatingPoint } from '../../tensor/dtype.js';
import type { DType } from '../../tensor/dtype.js';
import { tidy } from '../../tensor/scope.js';
import { Tensor } from '../../tensor/tensor.js';
import { dialectOf, normHint } from './dialectHint.js';
import type { Module } from './module.js';
import type { Buffer, Parameter } from './parameter.js';
import { joinedName, placesBelow } from './registration.js';

/** A state dict: names to tensors. */
export type StateSource = ReadonlyMap<string, unknown> | Readonly<Record<string, unknown>>;

/** Options of `Module.loadStateDict`. */
export interface LoadStateOptions {
  /** missing and unexpected keys are errors; default true */
  strict?: boolean;
  /** a prefix such as `'module.'` to remove from the keys that have it */
  stripPrefix?: string;
  /** the key that contains the state dict, such as `'model_state_dict'` */
  wrappedIn?: string;
  /**
   * use the memory of the given tensors instead of copying them, where dtype and device are those of
   * the module, as in PyTorch; the caller must not change them any more. Default false
   */
  assign?: boolean;
}

/** Result of `Module.loadStateDict`; both lists are empty unless `strict` is false. */
export interface LoadStateResult {
  /** keys of the module that are not in the state dict */
  missing: string[];
  /** keys of the state dict that are not in the module */
  unexpected: string[];
}

/** Thrown if a state dict does not fit a module; nothing has been copied. */
export class StateDictError extends TorchError {
  /** All keys of the module that are not in the state dict (the message lists the first 30). */
  readonly missing: readonly string[];
  /** All keys of the state dict that are not in the module. */
  readonly unexpected: readonly string[];
  /** Keys whose tensors cannot be copied, with the reason. */
  readonly mismatched: ReadonlyMap<string, string>;

  /**
   * @param message a description for people
   * @param faults the keys concerned; default: none, for a state dict that is wrong as a whole
   */
  constructor(
    message: string,
    faults: LoadStateResult & { mismatched?: ReadonlyMap<string, string> } = {
      missing: [],
      unexpected: [],
    },
  ) {
    super('ERR_CHECKPOINT', message);
    this.name = 'StateDictError';
    this.missing = faults.missing;
    this.unexpected = faults.unexpected;
    this.mismatched = faults.mismatched ?? new Map();
  }
}

interface Slot {
  readonly target: Parameter | Buffer;
  /** A derived buffer in the given shape; null for everything else. */
  readonly derive: (shape: readonly number[]) => Tensor | null;
}

/** Calls the protected method `Module.deriveBuffer`. */
export type DeriveBuffer = (
  owner: Module,
  property: string,
  form: { shape: readonly number[]; dtype: DType; device: Device },
) => Tensor | null;

/** Implements `Module.loadStateDict`. */
export function loadStateInto(
  module: Module,
  state: StateSource,
  options: LoadStateOptions,
  derive: DeriveBuffer,
): LoadStateResult {
  checkOptions('loadStateDict', options, ['strict', 'stripPrefix', 'wrappedIn', 'assign']);
  const strict = checkBoolean('loadStateDict', 'strict', orDefault(options.strict, true));
  const assign = checkBoolean('loadStateDict', 'assign', orDefault(options.assign, false));
  for (const name of ['stripPrefix', 'wrappedIn'] as const) {
    if (options[name] !== undefined) checkString('loadStateDict', name, options[name]);
  }
  const slots = slotsOf(module, derive);
  const source = tensorsOf(state, options);
  const missing = [...slots.keys()].filter((key) => !source.has(key));
  const unexpected = [...source.keys()].filter((key) => !slots.has(key));
  const noneMatches = source.size > 0 ? unexpected.length === source.size : slots.size > 0;
  tidy(() => {
    const mismatched = new Map<string, string>();
    const copies = new Map<Tensor, { key: string; value: Tensor }>();
    for (const [key, slot] of slots) {
      const value = source.get(key);
      if (value === undefined) continue;
      const { fault, recompute = false } = judged(slot, value);
      const first = copies.get(slot.target);
      if (fault !== undefined) mismatched.set(key, fault);
      else if (first !== undefined && !sameValues(first.value, value)) {
        mismatched.set(
          key,
          `tied to "${first.key}" in the module, but the state dict's values differ`,
        );
      } else if (!recompute) copies.set(slot.target, { key, value });
    }
    const incomplete = missing.length + unexpected.length > 0;
    const onlyTables = incomplete && !noneMatches && matchesOnlyTables(slots, source);
    if (noneMatches || onlyTables || mismatched.size > 0 || (strict && incomplete)) {
      const faults = { missing, unexpected, mismatched };
      const nothing = noneMatches ? 'no key' : onlyTables ? 'only tables' : null;
      throw new StateDictError(explain(module, slots, source, faults, nothing), faults);
    }
    noGrad(() => {
      const taken = new Set<Tensor>();
      for (const [target, { value }] of copies) {
        // Two parameters of one tensor would be tied.
        if (assign && !taken.has(value) && canReplace(target, value)) {
          taken.add(value);
          native().setData(target, value);
        } else {
          target.copy_(value);
        }
      }
    });
  });
  return { missing, unexpected };
}

/** Whether a parameter may have the memory of another tensor instead of its own. */
function canReplace(target: Tensor, value: Tensor): boolean {
  return (
    value.dtype === target.dtype &&
    value.device === target.device &&
    value.isLeaf &&
    !value.requiresGrad &&
    value.isContiguous
  );
}

/** Whether the state dict matches only derived buffers, and the module has other state as well. */
function matchesOnlyTables(
  slots: ReadonlyMap<string, Slot>,
  source: ReadonlyMap<string, Tensor>,
): boolean {
  const trained = [...slots].filter(([, { target, derive }]) => derive(target.shape) === null);
  return trained.length > 0 && !trained.some(([key]) => source.has(key));
}

function slotsOf(module: Module, derive: DeriveBuffer): Map<string, Slot> {
  const slots = new Map<string, Slot>();
  for (const { name: prefix, module: owner, registered } of placesBelow(module, {
    removeDuplicate: false,
  })) {
    for (const { name, value } of registered.parameters) {
      slots.set(joinedName(prefix, name), { target: value, derive: () => null });
    }
    for (const { property, name, value } of registered.buffers) {
      if (!value.persistent) continue;
      slots.set(joinedName(prefix, name), {
        target: value,
        derive: (shape) =>
          derive(owner, property, { shape, dtype: value.dtype, device: value.device }),
      });
    }
  }
  return slots;
}

/** `fault`: why `value` cannot be copied; `recompute`: the module keeps its own values. */
function judged({ target, derive }: Slot, value: Tensor): { fault?: string; recompute?: boolean } {
  if (isFloatingPoint(target.dtype) !== isFloatingPoint(value.dtype)) {
    return { fault: `${target.dtype} in the module, ${value.dtype} in the state dict` };
  }
  const [own, given] = [formatShape(target.shape), formatShape(value.shape)];
  const derived = derive(value.shape);
  if (derived !== null && !agree(derived, value)) {
    const fault =
      'the table in the state dict has other values: it was computed by another formula';
    return { fault };
  }
  if (own === given) return {};
  return derived === null
    ? { fault: `${own} in the module, ${given} in the state dict` }
    : { recompute: true };
}

/** Whether the values are equal within half precision. */
function agree(derived: Tensor, value: Tensor): boolean {
  const { device } = derived;
  return derived.float().allclose(value.to({ dtype: 'float32', device }), { rtol: 0, atol: 0.02 });
}

/** Whether two tensors of the same shape have equal values, as a tied parameter needs. */
function sameValues(a: Tensor, b: Tensor): boolean {
  if (a === b) return true;
  const { dtype, device } = a;
  return a.allclose(b.to({ dtype, device }), { rtol: 0, atol: 0, equalNan: true });
}

/** Unwraps the state dict, checks its values and strips the prefix. */
function tensorsOf(state: StateSource, options: LoadStateOptions): Map<string, Tensor> {
  let entries = entriesOf(state, 'state');
  if (options.wrappedIn !== undefined) {
    const inner = entries.find(([key]) => key === options.wrappedIn);
    if (inner === undefined) {
      throw new StateDictError(
        `loadStateDict: there is no key "${options.wrappedIn}" (wrappedIn); ` +
          `keys: ${list(entries.map(([key]) => key))}`,
      );
    }
    entries = entriesOf(inner[1], `state["${options.wrappedIn}"]`);
  }
  for (const [key, value] of entries) {
    if (!(value instanceof Tensor)) rejectValue(key, value, entries);
  }
  const tensors = entries as [string, Tensor][];
  return options.stripPrefix === undefined
    ? new Map(tensors)
    : withoutPrefix(tensors, options.stripPrefix);
}

function entriesOf(state: unknown, name: string): [string, unknown][] {
  if (state instanceof Map) return [...(state as Map<string, unknown>)];
  if (
    typeof state === 'object' &&
    state !== null &&
    !Array.isArray(state) &&
    !(state instanceof Tensor)
  ) {
    return Object.entries(state);
  }
  throw new TypeError(
    `loadStateDict: ${name} must be a Map or object from names to tensors, got ${describe(state)}`,
  );
}

function rejectValue(key: string, value: unknown, entries: [string, unknown][]): never {
  const wrapper = entries.find(([, inner]) => holdsTensors(inner));
  if (wrapper === undefined) {
    throw new StateDictError(`loadStateDict: "${key}" must be a Tensor, got ${describe(value)}`);
  }
  const others = entries.map(([name]) => name).filter((name) => name !== wrapper[0]);
  throw new StateDictError(
    `loadStateDict: the state dict is under the key "${wrapper[0]}"` +
      `${others.length > 0 ? `, next to ${list(others)}` : ''}; ` +
      `pass { wrappedIn: ${JSON.stringify(wrapper[0])} }`,
  );
}

function holdsTensors(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || value instanceof Tensor) return false;
  const values: unknown[] = value instanceof Map ? [...value.values()] : Object.values(value);
  return values.length > 0 && values.every((item) => item instanceof Tensor);
}

function withoutPrefix(tensors: [string, Tensor][], prefix: string): Map<string, Tensor> {
  if (!tensors.some(([key]) => key.startsWith(prefix))) {
    throw new StateDictError(
      `loadStateDict: no key starts with the prefix "${prefix}" (stripPrefix); ` +
        `keys: ${list(tensors.map(([key]) => key))}`,
    );
  }
  const stripped = new Map<string, Tensor>();
  for (const [key, tensor] of tensors) {
    const name = key.startsWith(prefix) ? key.slice(prefix.length) : key;
    if (stripped.has(name)) {
      throw new StateDictError(
        `loadStateDict: "${name}" is present twice, with and without "${prefix}"`,
      );
    }
    stripped.set(name, tensor);
  }
  return stripped;
}

function explain(
  module: Module,
  slots: ReadonlyMap<string, Slot>,
  source: ReadonlyMap<string, Tensor>,
  faults: LoadStateResult & { mismatched: ReadonlyMap<string, string> },
  nothing: 'no key' | 'only tables' | null,
): string {
  if (source.size === 0) {
    return (
      'loadStateDict: the state dict is empty; pass an object or Map from names to tensors, such ' +
      `as stateDict() or SafetensorsFile.tensors() returns; missing: ${list(faults.missing)}`
    );
  }
  const keys =
    source.size === 1 ? 'the only key does not belong' : `none of the ${source.size} keys belongs`;
  const name = module.constructor.name;
  const first =
    nothing === 'no key'
      ? `${keys} to ${name}`
      : nothing === 'only tables'
        ? `the state dict has no weight of ${name}, only tables that its settings determine`
        : `the state dict does not fit ${name}`;
  const lines = [`loadStateDict: ${first}; nothing was loaded`];
  const prefix = foreignPrefix(slots, source);
  if (prefix !== null) {
    lines.push(
      `  the keys start with "${prefix}": pass { stripPrefix: ${JSON.stringify(prefix)} }`,
    );
  }
  const [own, given] = [dialectOf(slots.keys()), dialectOf(source.keys())];
  if (given !== null && given !== own) {
    const expected = own === null ? '' : `, the module's keys are those of ${own}`;
    lines.push(`  the keys look like those of ${given}${expected}`);
  }
  const hint = normHint(faults.missing, withoutForeign(faults.unexpected, prefix));
  if (hint !== null) lines.push(`  ${hint}`);
  if (faults.missing.length > 0) lines.push(`  missing: ${list(faults.missing)}`);
  if (faults.unexpected.length > 0) lines.push(`  unexpected: ${list(faults.unexpected)}`);
  const mismatched = [...faults.mismatched];
  for (const [key, reason] of mismatched.slice(0, 30)) lines.push(`  ${key}: ${reason}`);
  if (mismatched.length > 30) lines.push(`  and ${mismatched.length - 30} more`);
  return lines.join('\n');
}

function withoutForeign(keys: readonly string[], prefix: string | null): readonly string[] {
  if (prefix === null) return keys;
  return keys.map((key) => (key.startsWith(prefix) ? key.slice(prefix.length) : key));
}

/** A prefix whose removal would turn most of the unknown keys into known ones. */
function foreignPrefix(
  slots: ReadonlyMap<string, Slot>,
  source: ReadonlyMap<string, Tensor>,
): string | null {
  const unknown = [...source.keys()].filter((key) => !slots.has(key));
  for (const key of unknown) {
    for (let dot = key.indexOf('.'); dot >= 0; dot = key.indexOf('.', dot + 1)) {
      const prefix = key.slice(0, dot + 1);
      const known = unknown.filter(
        (other) => other.startsWith(prefix) && slots.has(other.slice(prefix.length)),
      );
      if (known.length * 2 > source.size) return prefix;
    }
  }
  return null;
}

/** The first names, for the message; the error's properties have all of them. */
function list(names: readonly string[]): string {
  const quoted = names.slice(0, 30).map((name) => `"${name}"`);
  if (names.length > 30) quoted.push(`and ${names.length - 30} more`);
  return quoted.join(', ');
}
