#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

// Dropout on the CPU, in loops over rows.

namespace torchformer::core {

/// Fills a contiguous bool tensor: true where an element is kept.
void keepMask(const at::Tensor& kept, double p, uint64_t seed);

/// drop(input), added to `residual` (same shape) where one is given; all float32 or all float64.
at::Tensor dropRows(const at::Tensor& input, double p, uint64_t seed,
                    const at::Tensor& residual = {});

/// max(a + bias, 0) with the dropped places at 0, unscaled, in place. `a` is contiguous
/// [rows, columns], float32 or float64; `bias` [columns] may be undefined; p = 0 drops nothing.
void biasReluDrop_(const at::Tensor& a, const at::Tensor& bias, double p, uint64_t seed);

}  // namespace torchformer::core
