#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace torchformer::core {

/// A bool tensor of the shape and device of `like`, true where an element is kept: dropped with
/// probability `p`. Drawn from `generator`, else from the device's default generator. It consumes
/// the generator exactly as PyTorch's dropout does, so one seed gives both the same mask.
at::Tensor drawKept(const at::Tensor& like, double p,
                    const std::optional<at::Generator>& generator);

/// What the survivors are multiplied with, 1 / (1 - p); 0 for p = 1, where there are none.
double survivorScale(double p);

/// `input` with the dropped places at 0 and the others scaled; a new tensor. Differentiable.
at::Tensor applyKept(const at::Tensor& input, const at::Tensor& kept, double p);

}  // namespace torchformer::core
