/** Sums of products over labeled dimensions. */
import { describe } from '../runtime/arguments.js';
import { checkTensor, explained, formatShape } from './check.js';
import { callTensor } from './dispatch.js';
import type { Tensor } from './tensor.js';

/**
 * Einstein summation: each letter labels a dimension; letters missing from the output are summed.
 * `einsum('bik,bkj->bij', a, b)` is a batch of matrix products, `einsum('ii->i', a)` a diagonal.
 * `...` represents dimensions that are broadcast. Without `->`, the output has the letters that
 * occur once, in alphabetical order.
 *
 * @throws TypeError for invalid arguments; RangeError if letters and dimensions do not match
 */
export function einsum(equation: string, ...tensors: Tensor[]): Tensor {
  if (typeof equation !== 'string') {
    throw new TypeError(
      `einsum: equation must be a string like 'ij,jk->ik', got ${describe(equation)}`,
    );
  }
  if (tensors.length === 0) throw new TypeError('einsum: pass at least one Tensor');
  tensors.forEach((tensor, at) => checkTensor('einsum', `tensors[${at}]`, tensor));
  return explained(
    () => callTensor('aten::einsum', equation, tensors),
    () => checkEquation(equation, tensors),
  );
}

function checkEquation(equation: string, tensors: readonly Tensor[]): void {
  const [inputs = ''] = equation.replaceAll(' ', '').split('->');
  const terms = inputs.split(',');
  if (terms.length !== tensors.length) {
    throw new RangeError(
      `einsum: "${equation}" has ${terms.length} operands, got ${tensors.length} tensors`,
    );
  }
  const sizes = new Map<string, number>();
  terms.forEach((term, at) => {
    const shape = (tensors[at] as Tensor).shape;
    const letters = term.replace('...', '');
    const open = term.includes('...');
    if (open ? letters.length > shape.length : letters.length !== shape.length) {
      throw new RangeError(
        `einsum: "${term}" has ${letters.length} dimensions, but tensors[${at}] has shape ` +
          formatShape(shape),
      );
    }
    if (open) return;
    shape.forEach((size, dim) => {
      const letter = letters.charAt(dim);
      const known = sizes.get(letter) ?? 1;
      if (known !== 1 && size !== 1 && known !== size) {
        throw new RangeError(
          `einsum: "${letter}" has size ${known} in one tensor and ${size} in tensors[${at}]`,
        );
      }
      sizes.set(letter, Math.max(known, size));
    });
  });
}
