#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

#include "core/support/thread_team.h"

namespace torchformer::core {

struct RowSizes {
  int64_t count;
  int64_t columns;
};

inline RowSizes rowSizes(const at::Tensor& tensor) {
  if (tensor.dim() == 0) return {1, 1};
  const auto columns = tensor.size(-1);
  return {columns == 0 ? 0 : tensor.numel() / columns, columns};
}

/// Calls visit(row) for all rows, on all threads.
template <typename Visit>
void forEachRow(const RowSizes& rows, const Visit& visit) {
  // Number of elements below which a second thread costs more than it gains.
  constexpr int64_t grain = 16384;
  forRanges(rows.count, std::max<int64_t>(1, grain / std::max<int64_t>(1, rows.columns)),
            [&](int64_t begin, int64_t end) {
              for (int64_t row = begin; row < end; ++row) visit(row);
            });
}

}  // namespace torchformer::core
