#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace torchformer::core {

/// What tells that a weight has changed since something was made of it.
struct WeightState {
  uint32_t version;  // the weight's counter
  uint64_t sample;   // of some elements

  bool operator==(const WeightState&) const = default;
};

/// The state of b, of float32 or float64 on the CPU, that is `weight` or a view of it; a matrix, or
/// contiguous. `weight` must not be an inference tensor. `samples`: how many elements, at least 2.
WeightState weightState(const at::Tensor& b, const at::Tensor& weight, int64_t samples = 64);

}  // namespace torchformer::core
