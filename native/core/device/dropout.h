#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <optional>

#include "core/support/dropout_bits.h"
#include "core/support/seed.h"

// Dropout on the device of the tensors. A mask is a function of its seed
// (support/dropout_bits.h; the last dimension is the row): the same on all devices and for every
// number of threads.

namespace torchformer::core {

/// A bool tensor of the shape and device of `like`, true where an element is kept: dropped with
/// probability `p`.
at::Tensor keptMask(const at::Tensor& like, double p, const Seed& seed);

/// `input` with dropped elements set to 0 and the others scaled; a new tensor. Differentiable.
at::Tensor applyKept(const at::Tensor& input, const at::Tensor& kept, double p);

/// Like applyKept with the mask of this seed, but without storing that mask, and added to
/// `residual` (of the same shape) if it is given; in `outputType`. Not differentiable.
at::Tensor drop(const at::Tensor& input, double p, const Seed& seed, const at::Tensor& residual,
                at::ScalarType outputType);

void defineDroppingDeviceOps(torch::Library& library);

}  // namespace torchformer::core
