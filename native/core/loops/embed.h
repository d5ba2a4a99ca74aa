#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

// Rows of a table plus rows of a second one, with dropout, on the CPU, in loops over rows.

namespace torchformer::core {

/// output[i] = drop(weight[ids[i]] * scale + table[positions[i]]); `table` and `positions` may be
/// undefined. All contiguous, the tables float32 or all float64, ids and positions int64.
void embedAll(const at::Tensor& weight, const at::Tensor& ids, double scale,
              const at::Tensor& table, const at::Tensor& positions, double p, uint64_t seed,
              const at::Tensor& output);

}  // namespace torchformer::core
