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

/// One row of dropRows; `output` may be `input`.
void dropRow(const float* input, float* output, int64_t columns, const RowDropout& dropout,
             float scale);
void dropRow(const double* input, double* output, int64_t columns, const RowDropout& dropout,
             double scale);

}  // namespace torchformer::core
