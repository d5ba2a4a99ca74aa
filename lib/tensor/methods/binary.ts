/** Common code of the elementwise methods with a second operand. */
import {
  checkBroadcast,
  checkBroadcastTo,
  checkOperand,
  checkTensor,
  explained,
  type Scalar,
} from '../check.js';
import { call, callTensor } from '../dispatch.js';
import { isFloatingPoint } from '../dtype.js';
import { isTensor } from '../slot.js';
import type { Tensor } from '../tensor.js';

/** The overloads of one op: for a tensor or a number as the other operand. */
export interface BinaryOps {
  readonly tensor: string;
  readonly scalar: string;
}

const knownOverloads = new Map<string, BinaryOps>();

/** `aten::<name>.Tensor` and `.Scalar`, the overloads of most ops. */
export function overloads(name: string): BinaryOps {
  let known = knownOverloads.get(name);
  if (known === undefined) {
    // Cached, because a newly concatenated string must be hashed at each call.
    known = { tensor: `aten::${name}.Tensor`, scalar: `aten::${name}.Scalar` };
    knownOverloads.set(name, known);
  }
  return known;
}

function runBinary(
  self: Tensor,
  other: Tensor | Scalar,
  ops: BinaryOps,
  named: Record<string, unknown> | undefined,
): Tensor {
  const op = isTensor(other) ? ops.tensor : ops.scalar;
  return named === undefined ? callTensor(op, self, other) : callTensor(op, self, other, named);
}

/** `self op other`, broadcast, with the overload for tensors or for numbers. */
export function binary(
  self: Tensor,
  other: Tensor | Scalar,
  name: string,
  ops: BinaryOps,
  named?: Record<string, unknown>,
): Tensor {
  checkOperand(name, 'other', other);
  return explained(
    () => runBinary(self, other, ops, named),
    () => {
      if (isTensor(other)) {
        checkBroadcast(name, ['the tensor', 'other'], self.shape, other.shape);
      }
    },
  );
}

/** The same in place; the tensor keeps its shape and dtype. */
export function binaryInPlace(
  self: Tensor,
  other: Tensor | Scalar,
  name: string,
  ops: BinaryOps,
  named?: Record<string, unknown>,
): Tensor {
  checkOperand(name, 'other', other);
  explained(
    () => runBinary(self, other, ops, named),
    () => {
      if (isTensor(other)) checkBroadcastTo(name, 'other', other.shape, self.shape);
    },
  );
  return self;
}

/** For ops that accept only tensors as the other operand. */
export function binaryOfTensors(self: Tensor, other: Tensor, name: string, op: string): Tensor {
  checkTensor(name, 'other', other);
  return explained(
    () => callTensor(op, self, other),
    () => checkBroadcast(name, ['the tensor', 'other'], self.shape, other.shape),
  );
}

/** For bitwise ops, which accept only integers and bools. @throws TypeError */
export function binaryOfBits(
  self: Tensor,
  other: Tensor | Scalar,
  name: string,
  ops: BinaryOps,
): Tensor {
  checkBits(name, 'the tensor', self);
  if (isTensor(other)) checkBits(name, 'other', other);
  return binary(self, other, name, ops);
}

/** @throws TypeError if the dtype of `value` is floating-point */
export function checkBits(owner: string, name: string, value: Tensor): void {
  if (isFloatingPoint(value.dtype)) {
    throw new TypeError(
      `${owner}: ${name} must contain integers or bools, got ${value.dtype}; ` +
        'convert it: long() or bool()',
    );
  }
}

/** Runs an in-place op on one tensor; returns the tensor. */
export function inPlace(self: Tensor, op: string, ...args: unknown[]): Tensor {
  call(op, self, ...args);
  return self;
}
