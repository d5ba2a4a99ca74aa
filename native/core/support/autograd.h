#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <initializer_list>

#include "core/support/seed.h"

namespace torchformer::core {

using torch::autograd::variable_list;

/// True when a call with these inputs must be recorded: gradients are on and an input wants one,
/// and the call is not below autograd already. Undefined tensors do not count. An input with a
/// forward-mode tangent counts too: recording it ends in PyTorch's "jvp is not implemented" error,
/// where not recording would drop the tangent silently.
bool mustRecord(std::initializer_list<at::Tensor> inputs);

/// Gradients of `composed` (an op written with plain differentiable ops) for its `inputs`, recorded
/// themselves, so that they can be differentiated again.
///
/// The hand-written backwards use numbers saved in the forward pass, which have no history: fast,
/// but a second derivative through them would be silently wrong. When autograd asks for a graph of
/// the backward (create_graph), they answer with this instead: the forward is run again, readably.
/// Undefined inputs, inputs that need no gradient and undefined `outputGradients` are allowed.
variable_list differentiableGradients(
    const std::function<variable_list(const variable_list&)>& composed, const variable_list& inputs,
    const variable_list& outputGradients);

/// Keeps the seed of a mask for the backward pass.
void saveSeed(torch::autograd::AutogradContext* context, const Seed& seed);
Seed savedSeed(torch::autograd::AutogradContext* context);

}  // namespace torchformer::core
