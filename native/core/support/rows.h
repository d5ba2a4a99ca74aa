#pragma once

#include <ATen/core/Tensor.h>

namespace torchformer::core {

/// [..., D] -> [rows, D]. The row count is spelled out: with D or rows 0, view cannot infer it.
inline at::Tensor asRows(const at::Tensor& tensor) {
  return tensor.dim() == 1 ? tensor.unsqueeze(0) : tensor.flatten(0, -2);
}

/// [rows, last] in the leading dimensions of `like`.
inline at::Tensor withLastSize(const at::Tensor& rows, const at::Tensor& like, int64_t last) {
  auto sizes = like.sizes().vec();
  sizes.back() = last;
  return rows.view(sizes);
}

}  // namespace torchformer::core
