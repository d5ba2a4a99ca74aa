#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace torchformer::core {

inline bool isHalf(at::ScalarType dtype) { return dtype == at::kHalf || dtype == at::kBFloat16; }

inline bool isHalf(const at::Tensor& tensor) { return isHalf(tensor.scalar_type()); }

/// The dtype of statistics over a row: float32, or float64 for float64 rows.
inline at::ScalarType statisticsType(const at::Tensor& rows) {
  return rows.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

/// The tensor in the precision of statistics over a row: float16 and bfloat16 as float32, others
/// unchanged (no copy).
inline at::Tensor widened(const at::Tensor& tensor) {
  return isHalf(tensor) ? tensor.to(at::kFloat) : tensor;
}

/// A gradient that was computed in another dtype, converted to that of its tensor.
inline at::Tensor narrowed(const at::Tensor& gradient, const at::Tensor& like) {
  return gradient.defined() ? gradient.to(like.scalar_type()) : gradient;
}

/// The dtype of an op's result for its option `results`: "own" is that of `input`; "bfloat16" and
/// "float16" are for results read only by products in that format, for float32 and half inputs.
/// Anything else is an ERR_ARGUMENT. `op` is for the message.
at::ScalarType resultType(const char* op, std::string_view results, const at::Tensor& input);

}  // namespace torchformer::core
