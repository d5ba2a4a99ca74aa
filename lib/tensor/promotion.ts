/** The dtypes of results. libtorch implements the rules; they are not duplicated here. */
import { checkOperand, type Scalar } from './check.js';
import { call } from './dispatch.js';
import { checkDType, type DType } from './dtype.js';
import { isTensor } from './slot.js';
import type { Tensor } from './tensor.js';

/**
 * The smallest dtype to which both can be converted: int64 and float16 give float16; float16 and
 * bfloat16 give float32. This is the dtype of ops on two tensors with one or more dimensions.
 */
export function promoteTypes(a: DType, b: DType): DType {
  checkDType('promoteTypes', 'a', a);
  checkDType('promoteTypes', 'b', b);
  return call('aten::promote_types', a, b) as DType;
}

/**
 * The dtype of an arithmetic result. Numbers and 0-dim tensors change the dtype of larger tensors
 * only if they are of a higher kind (bool, integer, floating-point).
 */
export function resultType(a: Tensor | Scalar, b: Tensor | Scalar): DType {
  checkOperand('resultType', 'a', a);
  checkOperand('resultType', 'b', b);
  const kinds = `${isTensor(a) ? 'Tensor' : 'Scalar'}_${isTensor(b) ? 'Tensor' : 'Scalar'}`;
  const overload = { Tensor_Tensor: 'Tensor', Tensor_Scalar: 'Scalar' }[kinds] ?? kinds;
  return call(`aten::result_type.${overload}`, a, b) as DType;
}

/** Whether in-place ops can convert `from` to `to`, which is not possible to a lower kind. */
export function canCast(from: DType, to: DType): boolean {
  checkDType('canCast', 'from', from);
  checkDType('canCast', 'to', to);
  return call('aten::can_cast', from, to) as boolean;
}
