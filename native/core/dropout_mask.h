#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace torchformer::core {

/// A bool tensor of the shape and device of `like`, true where an element is kept: dropped with
/// probability `p`. On the CPU one number is taken from `generator`, else from the device's default
/// generator, and the mask is a function of it (see counter_random.h; the last dimension is the
/// row): the same for every number of threads. Other devices draw from their generator.
at::Tensor drawKept(const at::Tensor& like, double p,
                    const std::optional<at::Generator>& generator);

/// The mask that drawKept makes from this number.
at::Tensor keptFromSeed(const at::Tensor& like, double p, uint64_t seed);

/// What the survivors are multiplied with, 1 / (1 - p); 0 for p = 1, where there are none.
double survivorScale(double p);

/// `input` with the dropped places at 0 and the others scaled; a new tensor. Differentiable.
at::Tensor applyKept(const at::Tensor& input, const at::Tensor& kept, double p);

/// Whether applySeed can do what applyKept does: float32 and float64 on the CPU.
bool takesSeed(const at::Tensor& input);

/// applyKept with the mask of keptFromSeed in one pass, without that mask, and added to `residual`
/// (of the same shape) where one is given. Not differentiable.
at::Tensor applySeed(const at::Tensor& input, double p, uint64_t seed,
                     const at::Tensor& residual = {});

/// max(a + bias, 0) with the dropped places at 0, unscaled, in place. `a` is contiguous
/// [rows, columns] and takesSeed; `bias` [columns] may be undefined; p = 0 drops nothing.
void biasReluDrop_(const at::Tensor& a, const at::Tensor& bias, double p, uint64_t seed);

}  // namespace torchformer::core
