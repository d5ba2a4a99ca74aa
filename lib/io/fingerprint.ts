/** Detects changes to a tensor. */
import { call, callTensor } from '../tensor/dispatch.js';
import { tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';

/**
 * The state of a tensor at construction, without a copy: libtorch's version counter, and a hash of the
 * values, because fused optimizers and recorded graphs write without incrementing the counter. The hash
 * alone does not distinguish even numbers of equal values.
 */
export class Fingerprint {
  readonly #tensor: Tensor;
  readonly #version: number;
  readonly #hash: bigint;

  constructor(tensor: Tensor) {
    this.#tensor = tensor;
    this.#version = versionOf(tensor);
    this.#hash = hashOf(tensor);
  }

  /** Whether the tensor is unchanged. */
  matches(): boolean {
    return versionOf(this.#tensor) === this.#version && hashOf(this.#tensor) === this.#hash;
  }
}

function versionOf(tensor: Tensor): number {
  return call('aten::_version', tensor) as number;
}

function hashOf(tensor: Tensor): bigint {
  if (tensor.numel === 0) return 0n;
  return tidy(() => {
    const hash = callTensor('aten::hash_tensor', tensor.detach());
    return callTensor('aten::view.dtype', hash, 'int64').data()[0] as bigint;
  });
}
