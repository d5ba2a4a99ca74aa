#include "core/loops/activation_dropout.h"

#include <algorithm>

#include "core/loops/dropout.h"
#include "core/loops/for_each_row.h"
#include "core/loops/simd.h"

namespace torchformer::core {

namespace {

/// NaN stays NaN, so that it reaches the loss.
template <typename T>
TF_INLINE void biasReluLoop(T* a, const T* bias, int64_t columns) {
  if (bias != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) {
      const T value = a[i] + bias[i];
      a[i] = value < T(0) ? T(0) : value;
    }
  } else {
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) a[i] = a[i] < T(0) ? T(0) : a[i];
  }
}

TF_VECTORIZED void biasReluRow(float* a, const float* bias, int64_t columns) {
  biasReluLoop(a, bias, columns);
}

void biasReluRow(double* a, const double* bias, int64_t columns) { biasReluLoop(a, bias, columns); }

template <typename T>
void biasReluDropAll(const at::Tensor& a, const at::Tensor& bias, double p, uint64_t seed) {
  const auto rows = rowSizes(a);
  auto* data = a.mutable_data_ptr<T>();
  const auto* biasData = bias.defined() ? bias.const_data_ptr<T>() : nullptr;
  const auto threshold = dropThreshold(p);
  forEachRow(rows, [&](int64_t row) {
    auto* const start = data + row * rows.columns;
    biasReluRow(start, biasData, rows.columns);
    if (p >= 1.0) {
      std::fill(start, start + rows.columns, T(0));
    } else if (p > 0.0) {
      dropRow(start, start, rows.columns, RowDropout(seed, static_cast<uint64_t>(row), threshold),
              T(1));
    }
  });
}

}  // namespace

void biasReluDrop_(const at::Tensor& a, const at::Tensor& bias, double p, uint64_t seed) {
  const auto added = bias.defined() ? bias.contiguous() : bias;
  if (a.scalar_type() == at::kDouble) {
    biasReluDropAll<double>(a, added, p, seed);
  } else {
    biasReluDropAll<float>(a, added, p, seed);
  }
}

}  // namespace torchformer::core
