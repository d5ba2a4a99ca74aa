#pragma once

#include <ATen/core/Tensor.h>

namespace torchformer::core {

inline bool isHalf(const at::Tensor& tensor) {
  const auto dtype = tensor.scalar_type();
  return dtype == at::kHalf || dtype == at::kBFloat16;
}

/// The tensor in the precision that statistics over a row are computed in: float16 and bfloat16 as
/// float32, others as they are (no copy).
inline at::Tensor widened(const at::Tensor& tensor) {
  return isHalf(tensor) ? tensor.to(at::kFloat) : tensor;
}

}  // namespace torchformer::core
