/**
 * Tells the test runner how tensors compare: by dtype, shape and values. Left to itself it would
 * take each apart element by element, as tensors can be iterated. The package is not imported, so
 * that test files without tensors do not load it.
 */
import { expect } from 'vitest';
import type { Tensor } from 'torchformer';

function isTensor(value: unknown): value is Tensor {
  return typeof (value as Partial<Tensor> | null)?.backwardAsync === 'function';
}

expect.addEqualityTesters([
  (a: unknown, b: unknown) => {
    if (!isTensor(a) || !isTensor(b)) return undefined;
    if (a === b || a.isDisposed || b.isDisposed) return a === b;
    return a.dtype === b.dtype && a.device === b.device && a.equal(b);
  },
]);
