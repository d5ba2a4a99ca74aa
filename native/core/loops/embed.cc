#include "core/loops/embed.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "core/loops/dropout.h"
#include "core/loops/simd.h"

namespace torchformer::core {

namespace {

/// One row before its dropout; `added` may be null.
template <typename T>
TF_INLINE void sumLoop(const T* row, const T* added, T* output, int64_t size, T scale) {
  if (added != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) output[i] = row[i] * scale + added[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) output[i] = row[i] * scale;
  }
}

TF_VECTORIZED void sumRow(const float* row, const float* added, float* output, int64_t size,
                          float scale) {
  sumLoop(row, added, output, size, scale);
}

void sumRow(const double* row, const double* added, double* output, int64_t size, double scale) {
  sumLoop(row, added, output, size, scale);
}

template <typename T>
void embedRows(const at::Tensor& weight, const at::Tensor& ids, double scale,
               const at::Tensor& table, const at::Tensor& positions, double p, uint64_t seed,
               const at::Tensor& output) {
  const auto width = weight.size(1);
  const auto* weights = weight.const_data_ptr<T>();
  const auto* idData = ids.const_data_ptr<int64_t>();
  const auto* tableData = table.defined() ? table.const_data_ptr<T>() : nullptr;
  const auto* places = table.defined() ? positions.const_data_ptr<int64_t>() : nullptr;
  auto* out = output.mutable_data_ptr<T>();
  const auto threshold = dropThreshold(p);
  const auto survivors = static_cast<T>(survivorScale(p));
  const auto grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, width));
  at::parallel_for(0, ids.numel(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      T* const to = out + row * width;
      if (p >= 1.0) {
        // Not 0 times the element, which may be infinite.
        std::fill(to, to + width, T(0));
        continue;
      }
      sumRow(weights + idData[row] * width,
             tableData == nullptr ? nullptr : tableData + places[row] * width, to, width,
             static_cast<T>(scale));
      if (p > 0.0) {
        dropRow(to, to, width, RowDropout(seed, static_cast<uint64_t>(row), threshold), survivors);
      }
    }
  });
}

}  // namespace

void embedAll(const at::Tensor& weight, const at::Tensor& ids, double scale,
              const at::Tensor& table, const at::Tensor& positions, double p, uint64_t seed,
              const at::Tensor& output) {
  if (weight.scalar_type() == at::kDouble) {
    embedRows<double>(weight, ids, scale, table, positions, p, seed, output);
  } else {
    embedRows<float>(weight, ids, scale, table, positions, p, seed, output);
  }
}

}  // namespace torchformer::core
