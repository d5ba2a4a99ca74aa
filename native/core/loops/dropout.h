#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/support/dropout_bits.h"

// Dropout on the CPU, in loops over rows.

namespace torchformer::core {

/// Fills a contiguous bool tensor: true where an element is kept.
void keepMask(const at::Tensor& kept, double p, uint64_t seed);

/// drop(input), added to `residual` (same shape) if it is given; all float32 or all float64.
at::Tensor dropRows(const at::Tensor& input, double p, uint64_t seed,
                    const at::Tensor& residual = {});

/// The rows of one call of dropRows, one at a time.
template <typename T>
class RowDropper {
 public:
  RowDropper(double p, uint64_t seed, int64_t columns);

  /// `residual` may be null. `output` may be `input`.
  void operator()(int64_t row, const T* input, const T* residual, T* output) const;

 private:
  double p_;
  uint64_t seed_;
  int64_t columns_;
  uint32_t threshold_;
  T scale_;
};

/// One row of dropRows without a residual, for 0 < p < 1; `output` may be `input`.
void dropRow(const float* input, float* output, int64_t columns, const RowDropout& dropout,
             float scale);
void dropRow(const double* input, double* output, int64_t columns, const RowDropout& dropout,
             double scale);

}  // namespace torchformer::core
