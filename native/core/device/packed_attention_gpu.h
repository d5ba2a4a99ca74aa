#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace torchformer::core {

/// Sequences of packed rows in the form that libtorch's kernels require.
struct DeviceSequences {
  at::Tensor offsets;  // int32 [B + 1], on the device of the rows
  int64_t longest;
};

/// packed_attention on a GPU, by libtorch's kernels for sequences of different lengths;
/// differentiable. `query` [Nq, H * Dk], `key` and `value` [Nk, H * Dk]: float32, bfloat16 or
/// float16. Its dropout draws from the GPU's generator.
at::Tensor packedAttentionOnGpu(const at::Tensor& query, const at::Tensor& key,
                                const at::Tensor& value, const DeviceSequences& queries,
                                const DeviceSequences& keys, int64_t heads, bool causal,
                                double dropoutP);

}  // namespace torchformer::core
