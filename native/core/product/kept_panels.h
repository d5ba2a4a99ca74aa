#pragma once

#include <ATen/core/Tensor.h>

// Weights that are packed once for many products, as in decoding, where a product of few rows would
// otherwise spend most of its time on packing.

namespace torchformer::core {

/// b [k, m], a view of `weight`, packed for our kernels: float32 or float64 on the CPU.
///
/// The panels are kept until the storage of the weight is gone or has changed, which its version
/// counter tells, or a sample of its elements. What passes both by is a write to single elements
/// through an alias with a counter of its own, such as those of `unsafe_split` or `set_`. Those of
/// a storage that is gone are freed by the next call. Undefined if there is no counter (inference
/// tensors), or no kernel for this processor.
at::Tensor keptPanels(const at::Tensor& b, const at::Tensor& weight);

/// b packed for our kernels, for the caller alone; undefined if there is no kernel.
at::Tensor packedPanels(const at::Tensor& b);

/// So many bytes of panels are kept at most: the oldest are dropped first.
constexpr int64_t mostKeptPanelBytes = int64_t{2} << 30;

}  // namespace torchformer::core
