#include "core/loops/dropout.h"

#include <ATen/ops/empty_like.h>

#include <algorithm>

#include "core/loops/for_each_row.h"
#include "core/loops/simd.h"

namespace torchformer::core {

namespace {

TF_VECTORIZED void keepRow(uint8_t* kept, int64_t columns, const RowDropout& dropout) {
#pragma omp simd
  for (int64_t i = 0; i < columns; ++i) {
    kept[i] = dropout.keeps(static_cast<uint32_t>(i)) ? 1 : 0;
  }
}

template <typename T>
TF_INLINE void dropLoop(const T* input, T* output, int64_t columns, const RowDropout& dropout,
                        T scale) {
#pragma omp simd
  for (int64_t i = 0; i < columns; ++i) {
    output[i] = dropout.keeps(static_cast<uint32_t>(i)) ? input[i] * scale : T(0);
  }
}

template <typename T>
TF_INLINE void dropAndAddLoop(const T* input, const T* residual, T* output, int64_t columns,
                              const RowDropout& dropout, T scale) {
#pragma omp simd
  for (int64_t i = 0; i < columns; ++i) {
    const T kept = dropout.keeps(static_cast<uint32_t>(i)) ? input[i] * scale : T(0);
    output[i] = residual[i] + kept;
  }
}

TF_VECTORIZED void dropAndAddRow(const float* input, const float* residual, float* output,
                                 int64_t columns, const RowDropout& dropout, float scale) {
  dropAndAddLoop(input, residual, output, columns, dropout, scale);
}

void dropAndAddRow(const double* input, const double* residual, double* output, int64_t columns,
                   const RowDropout& dropout, double scale) {
  dropAndAddLoop(input, residual, output, columns, dropout, scale);
}

template <typename T>
TF_INLINE void addLoop(const T* input, const T* residual, T* output, int64_t columns) {
#pragma omp simd
  for (int64_t i = 0; i < columns; ++i) output[i] = residual[i] + input[i];
}

TF_VECTORIZED void sumRow(const float* input, const float* residual, float* output,
                          int64_t columns) {
  addLoop(input, residual, output, columns);
}

void sumRow(const double* input, const double* residual, double* output, int64_t columns) {
  addLoop(input, residual, output, columns);
}

template <typename T>
void dropAll(const at::Tensor& input, const at::Tensor& residual, const at::Tensor& output,
             double p, uint64_t seed) {
  const auto rows = rowSizes(input);
  const auto* in = input.const_data_ptr<T>();
  const auto* added = residual.defined() ? residual.const_data_ptr<T>() : nullptr;
  auto* out = output.mutable_data_ptr<T>();
  const RowDropper<T> drop(p, seed, rows.columns);
  forEachRow(rows, [&](int64_t row) {
    const auto start = row * rows.columns;
    drop(row, in + start, added == nullptr ? nullptr : added + start, out + start);
  });
}

}  // namespace

TF_VECTORIZED void dropRow(const float* input, float* output, int64_t columns,
                           const RowDropout& dropout, float scale) {
  dropLoop(input, output, columns, dropout, scale);
}

void dropRow(const double* input, double* output, int64_t columns, const RowDropout& dropout,
             double scale) {
  dropLoop(input, output, columns, dropout, scale);
}

template <typename T>
RowDropper<T>::RowDropper(double p, uint64_t seed, int64_t columns)
    : p_(p),
      seed_(seed),
      columns_(columns),
      threshold_(dropThreshold(p)),
      scale_(static_cast<T>(survivorScale(p))) {}

template <typename T>
void RowDropper<T>::operator()(int64_t row, const T* input, const T* residual, T* output) const {
  if (p_ >= 1.0) {
    // Not 0 * input, because the input may be infinite.
    if (residual == nullptr)
      std::fill(output, output + columns_, T(0));
    else
      std::copy(residual, residual + columns_, output);
  } else if (p_ <= 0.0 && residual != nullptr) {
    sumRow(input, residual, output, columns_);
  } else {
    const RowDropout dropout(seed_, static_cast<uint64_t>(row), threshold_);
    if (residual == nullptr)
      dropRow(input, output, columns_, dropout, scale_);
    else
      dropAndAddRow(input, residual, output, columns_, dropout, scale_);
  }
}

template class RowDropper<float>;
template class RowDropper<double>;

void keepMask(const at::Tensor& kept, double p, uint64_t seed) {
  const auto rows = rowSizes(kept);
  // A bool is one byte, 0 or 1.
  auto* data = reinterpret_cast<uint8_t*>(kept.mutable_data_ptr<bool>());
  const auto threshold = dropThreshold(p);
  forEachRow(rows, [&](int64_t row) {
    auto* const start = data + row * rows.columns;
    if (p >= 1.0) {
      std::fill(start, start + rows.columns, uint8_t{0});
    } else {
      keepRow(start, rows.columns, RowDropout(seed, static_cast<uint64_t>(row), threshold));
    }
  });
}

at::Tensor dropRows(const at::Tensor& input, double p, uint64_t seed, const at::Tensor& residual) {
  const auto rows = input.contiguous();
  const auto added = residual.defined() ? residual.contiguous() : residual;
  auto output = at::empty_like(rows);
  if (rows.scalar_type() == at::kDouble) {
    dropAll<double>(rows, added, output, p, seed);
  } else {
    dropAll<float>(rows, added, output, p, seed);
  }
  return output;
}

}  // namespace torchformer::core
