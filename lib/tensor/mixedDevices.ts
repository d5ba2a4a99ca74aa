/** Explains errors for tensors on different devices. */
import { TorchError } from '../runtime/errors.js';
import type { BoundOp } from './native.js';
import { isTensor } from './slot.js';
import type { Tensor } from './tensor.js';

/**
 * libtorch's error for tensors on different devices names at most two devices, and no argument; ours
 * names each argument with its device. Any other error is returned unchanged.
 */
export function namingDevices(
  error: unknown,
  name: string,
  op: BoundOp,
  args: readonly unknown[],
): unknown {
  if (!(error instanceof TorchError) || error.code !== 'ERR_DEVICE') return error;
  const given = tensorsOf(op, args);
  const devices = new Set(given.map(({ tensor }) => tensor.device));
  const [first] = given;
  const other = given.find(({ tensor }) => tensor.device !== first?.tensor.device);
  if (devices.size < 2 || first === undefined || other === undefined) return error;
  const places = given.map((argument) => `${argument.name} is on ${argument.tensor.device}`);
  return new TorchError(
    'ERR_DEVICE',
    `${name}: all tensors must be on one device, but ${places.join(', ')}; ` +
      `move one: ${other.name}.to({ device: '${first.tensor.device}' })`,
    { cause: error },
  );
}

/** The tensor arguments with their names in the schema, and with their index if they are in lists. */
function tensorsOf(op: BoundOp, args: readonly unknown[]): { name: string; tensor: Tensor }[] {
  const names = argumentNames(op.schema);
  const found: { name: string; tensor: Tensor }[] = [];
  const look = (name: string, value: unknown) => {
    if (isTensor(value)) {
      if (!value.isDisposed) found.push({ name, tensor: value });
    } else if (Array.isArray(value)) {
      value.forEach((item, index) => look(`${name}[${index}]`, item));
    }
  };
  args.forEach((value, index) => {
    const isLast = index === args.length - 1;
    const name = names[index];
    if (name !== undefined) look(name, value);
    if (isLast && typeof value === 'object' && value !== null && !isTensor(value)) {
      if (Array.isArray(value)) return;
      for (const [key, item] of Object.entries(value)) look(key, item);
    }
  });
  return found;
}

/** `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`: self, other, alpha. */
function argumentNames(schema: string): string[] {
  const list = schema.slice(schema.indexOf('(') + 1, schema.lastIndexOf(') ->'));
  // Defaults and types may contain commas in brackets.
  const parts = list.split(/,(?![^([]*[)\]])/).map((part) => part.trim());
  return parts
    .filter((part) => part !== '*' && part !== '')
    .map((part) => /(\w+)(?:=.*)?$/.exec(part)?.[1] ?? 'argument');
}
