#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace torchformer::core {

/// The inputs of attention on the CPU: float32 or float64 [B, (H,) S, D] of any strides, none
/// empty; `mask` as in ops/attention.cc, or undefined.
struct CpuAttention {
  at::Tensor query, key, value, mask;
  double dropoutP;
  uint64_t seed;
  bool clearsEmptyRows;  // zero weights for queries that may attend to nothing, else uniform ones
};

struct CpuAttentionResult {
  at::Tensor output;   // [B, (H,) Sq, Dv], heads in memory as in query
  at::Tensor weights;  // [B, (H,) Sq, Sk], after dropout; undefined if not requested
  at::Tensor sums;     // for the backward pass
};

CpuAttentionResult attentionOnCpu(const CpuAttention& inputs, bool needsWeights);

struct CpuAttentionGradients {
  at::Tensor query, key, value;
};

/// Either gradient may be undefined, but not both.
CpuAttentionGradients attentionOnCpuBackward(const at::Tensor& gradOutput,
                                             const at::Tensor& gradWeights,
                                             const CpuAttention& inputs, const at::Tensor& sums);

}  // namespace torchformer::core
