#pragma once

#include <ATen/core/Tensor.h>

namespace torchformer::core {

/// [..., D] -> [rows, D]. The row count is explicit, because view cannot infer it if D or rows is
/// 0.
inline at::Tensor asRows(const at::Tensor& tensor) {
  return tensor.dim() == 1 ? tensor.unsqueeze(0) : tensor.flatten(0, -2);
}

/// [rows, last] reshaped to the leading dimensions of `like`.
inline at::Tensor withLastSize(const at::Tensor& rows, const at::Tensor& like, int64_t last) {
  auto sizes = like.sizes().vec();
  sizes.back() = last;
  return rows.view(sizes);
}

}  // namespace torchformer::core
