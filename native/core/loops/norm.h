#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/device/norm.h"

// Norms over rows on the CPU, forward and backward each in one pass over memory.

namespace torchformer::core {

/// `input` [..., D], `scale` [D], `shift` [D] or undefined, all float32 or all float64.
NormResult normRows(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                    const NormForm& form);

/// One row: output [features] = the norm of input [features]. `shift` may be null; the rows may be
/// the same.
void normRow(const float* input, const float* scale, const float* shift, float* output,
             int64_t features, const NormForm& form);

/// `gradSum` is added to the gradient of the input; undefined means 0. The order of all sums does
/// not depend on the number of threads.
NormGradients normRowsBackward(const at::Tensor& gradOutput, const at::Tensor& input,
                               const at::Tensor& scale, const at::Tensor& mean,
                               const at::Tensor& std, const at::Tensor& gradSum,
                               const NormForm& form, bool wantsInput);

/// The dropout of one call; without a dropout, `seed` is not used.
struct RowsDropout {
  double p;
  uint64_t seed;
};

/// normRows of residual + drop(input), and that sum.
DroppedSumNorm sumNormRows(const at::Tensor& input, const RowsDropout& dropout,
                           const at::Tensor& residual, const at::Tensor& scale,
                           const at::Tensor& shift, const NormForm& form);

/// normRowsBackward of that sum, and the gradient of the input before its dropout.
DroppedSumNormGradients sumNormRowsBackward(const at::Tensor& gradOutput, const at::Tensor& gradSum,
                                            const at::Tensor& sum, const RowsDropout& dropout,
                                            const at::Tensor& scale, const at::Tensor& mean,
                                            const at::Tensor& std, const NormForm& form);

}  // namespace torchformer::core
