/** The function `where`, which the method uses too. */
import { checkBroadcast, checkMask, checkOperand, explained, type Scalar } from './check.js';
import { callTensor } from './dispatch.js';
import { isTensor } from './slot.js';
import type { Tensor } from './tensor.js';

/** `input` where the bool tensor `condition` is true, else `other`; each is a tensor or a number. */
export function where(condition: Tensor, input: Tensor | Scalar, other: Tensor | Scalar): Tensor {
  checkMask('where', 'condition', condition);
  checkOperand('where', 'input', input);
  checkOperand('where', 'other', other);
  return explained(
    () => callTensor(`aten::where.${overload(input, other)}`, condition, input, other),
    () => {
      const named = { condition, input, other };
      const tensors = Object.entries(named).filter(([, value]) => isTensor(value));
      for (const [nameA, a] of tensors as [string, Tensor][]) {
        for (const [nameB, b] of tensors as [string, Tensor][]) {
          checkBroadcast('where', [nameA, nameB], a.shape, b.shape);
        }
      }
    },
  );
}

function overload(input: Tensor | Scalar, other: Tensor | Scalar): string {
  if (isTensor(input)) return isTensor(other) ? 'self' : 'ScalarOther';
  return isTensor(other) ? 'ScalarSelf' : 'Scalar';
}
