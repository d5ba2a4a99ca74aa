#pragma once

#include <ATen/core/Tensor.h>

#include "core/device/norm.h"

// Norms over rows on the CPU, forward and backward each in one pass over memory.

namespace torchformer::core {

/// `input` [..., D], `scale` [D], `shift` [D] or undefined, all float32 or all float64.
NormResult normRows(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                    const NormForm& form);

/// The order of all sums does not depend on the number of threads.
NormGradients normRowsBackward(const at::Tensor& gradOutput, const at::Tensor& input,
                               const at::Tensor& scale, const at::Tensor& mean,
                               const at::Tensor& std, const NormForm& form, bool wantsInput);

}  // namespace torchformer::core
