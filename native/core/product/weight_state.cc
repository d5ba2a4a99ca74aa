#include "core/product/weight_state.h"

#include <algorithm>
#include <cstring>

namespace torchformer::core {

namespace {

/// Some elements of b as bits: what no version counter tells of, such as the fused optimizers of
/// PyTorch or a write to an alias with a counter of its own, changes most elements of a weight.
template <typename T>
uint64_t sampleOf(const at::Tensor& b, int64_t samples) {
  const auto* data = b.const_data_ptr<T>();
  const auto count = b.numel();
  const bool isDense = b.is_contiguous();
  uint64_t hash = 0;
  for (int64_t i = 0; i < std::min(samples, count); ++i) {
    // From the first to the last element.
    const auto place = count <= samples ? i : i * (count - 1) / (samples - 1);
    const auto element =
        data[isDense ? place : place / b.size(1) * b.stride(0) + place % b.size(1) * b.stride(1)];
    uint64_t bits = 0;
    std::memcpy(&bits, &element, sizeof element);
    hash = (hash ^ bits) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
  }
  return hash;
}

uint64_t sampleOf(const at::Tensor& b, int64_t samples) {
  return b.scalar_type() == at::kDouble ? sampleOf<double>(b, samples)
                                        : sampleOf<float>(b, samples);
}

}  // namespace

WeightState weightState(const at::Tensor& b, const at::Tensor& weight, int64_t samples) {
  return {weight.unsafeGetTensorImpl()->version_counter().current_version(), sampleOf(b, samples)};
}

}  // namespace torchformer::core
