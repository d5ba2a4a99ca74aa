#include "core/support/autograd.h"

#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>

namespace torchformer::core {

bool mustRecord(std::initializer_list<at::Tensor> inputs) {
  if (c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutogradFunctionality))
    return false;
  const bool gradientsOn = c10::GradMode::is_enabled();
  for (const auto& input : inputs) {
    if (!input.defined()) continue;
    if ((gradientsOn && input.requires_grad()) || input._fw_grad(/*level=*/0).defined())
      return true;
  }
  return false;
}

variable_list differentiableGradients(
    const std::function<variable_list(const variable_list&)>& composed, const variable_list& inputs,
    const variable_list& outputGradients) {
  // Each input gets its own alias. In self-attention, query and key can be the same tensor;
  // autograd would return the sum of its gradients, twice.
  variable_list aliases;
  variable_list wanted;
  for (const auto& input : inputs) {
    aliases.push_back(input.defined() ? input.view_as(input) : input);
    if (input.defined() && input.requires_grad()) wanted.push_back(aliases.back());
  }

  variable_list outputs;
  variable_list upstream;
  const auto composedOutputs = composed(aliases);
  for (size_t i = 0; i < composedOutputs.size(); ++i) {
    if (!outputGradients[i].defined() || !composedOutputs[i].requires_grad()) continue;
    outputs.push_back(composedOutputs[i]);
    upstream.push_back(outputGradients[i]);
  }

  variable_list gradients(inputs.size());
  if (outputs.empty() || wanted.empty()) return gradients;
  const auto found = torch::autograd::grad(outputs, wanted, upstream, /*retain_graph=*/true,
                                           /*create_graph=*/true, /*allow_unused=*/true);
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined() && inputs[i].requires_grad()) gradients[i] = found[next++];
  }
  return gradients;
}

void saveSeed(torch::autograd::AutogradContext* context, const Seed& seed) {
  context->saved_data["seed"] = seed.number;
  context->saved_data["seed_slot"] = seed.optionalSlot();
}

Seed savedSeed(torch::autograd::AutogradContext* context) {
  return {context->saved_data["seed"].toInt(),
          orNone(context->saved_data["seed_slot"].toOptional<at::Tensor>())};
}

}  // namespace torchformer::core
