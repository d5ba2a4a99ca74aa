#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

// An activation with its bias and its dropout in one pass on the CPU, in loops over rows.

namespace torchformer::core {

/// max(a + bias, 0) with dropped elements set to 0, unscaled, in place. `a` is contiguous
/// [rows, columns], float32 or float64; `bias` [columns] may be undefined; p = 0 drops nothing.
void biasReluDrop_(const at::Tensor& a, const at::Tensor& bias, double p, uint64_t seed);

}  // namespace torchformer::core
