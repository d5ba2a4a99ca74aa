#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <initializer_list>

#include "core/support/seed.h"

namespace torchformer::core {

using torch::autograd::variable_list;

/// True if a call with these inputs must be recorded: gradients are enabled, an input requires one,
/// and the call is not already below autograd. Undefined tensors are ignored. An input with a
/// forward-mode tangent counts too: recording it results in PyTorch's "jvp is not implemented"
/// error, while not recording it would silently drop the tangent.
bool mustRecord(std::initializer_list<at::Tensor> inputs);

/// Gradients of `composed` (an op written with plain differentiable ops) for its `inputs`. They are
/// recorded, so that they can be differentiated again.
///
/// The hand-written backwards use numbers saved in the forward pass, which have no history: fast,
/// but a second derivative through them would be silently wrong. When autograd asks for a graph of
/// the backward (create_graph), they return this instead, which runs the forward again in plain
/// ops. Undefined inputs, inputs that need no gradient and undefined `outputGradients` are allowed.
variable_list differentiableGradients(
    const std::function<variable_list(const variable_list&)>& composed, const variable_list& inputs,
    const variable_list& outputGradients);

/// Keeps the seed of a mask for the backward pass.
void saveSeed(torch::autograd::AutogradContext* context, const Seed& seed);
Seed savedSeed(torch::autograd::AutogradContext* context);

}  // namespace torchformer::core
