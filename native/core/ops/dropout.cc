// Dropout, and the sum with the residual that follows it in a Transformer's sublayers.
//
// Purpose: in training, zero each element with probability p and scale the others by 1 / (1 - p),
//   so that the expected value is unchanged and inference needs no scaling. With a residual, the
//   sum is computed in the same pass over memory (paper, section 5.4).
// Shapes:  input any shape, residual the same shape -> output the same shape, in the dtype of the
//   residual, which may be float32 beside an input of a half type.
// Formula: y = residual + x * keep / (1 - p), keep ~ Bernoulli(1 - p).
// Backward: dx = dy * keep / (1 - p),  dresidual = dy.
// Saved:   the seed of the mask, from which backward computes it again.
// Hazards: p = 1 must give the residual, not 0 * infinity. The op always drops: the caller decides
//   whether the model is training. The result is never one of the arguments, not even for p = 0.

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>

#include "core/device/dropout.h"
#include "core/ops/ops.h"
#include "core/support/autograd.h"
#include "core/support/check.h"
#include "core/support/optional.h"

namespace torchformer::core {

namespace {

using torch::autograd::AutogradContext;

void checkArguments(const at::Tensor& input, double p, const at::Tensor& residual,
                    const OptionalGenerator& generator) {
  checkFloating("dropout", "input", input);
  if (residual.defined()) {
    checkParameter("dropout", "residual", residual, "input", input);
    TF_CHECK(ERR_SHAPE, residual.sizes() == input.sizes(),
             "dropout: residual must have the shape of input, ", input.sizes(), ", got ",
             residual.sizes());
  }
  checkProbability("dropout", "p", p);
  checkGenerator("dropout", generator);
}

at::ScalarType outputType(const at::Tensor& input, const at::Tensor& residual) {
  return (residual.defined() ? residual : input).scalar_type();
}

at::Tensor withoutDropout(const at::Tensor& input, const at::Tensor& residual) {
  return residual.defined() ? residual.add(input) : input.clone();
}

/// The formula in plain ops.
at::Tensor reference(const at::Tensor& input, double p, const OptionalTensor& optionalResidual,
                     OptionalGenerator generator) {
  const auto residual = orNone(optionalResidual);
  checkArguments(input, p, residual, generator);
  if (p == 0.0) return withoutDropout(input, residual);
  const auto kept = keptMask(input, p, drawSeed(p, generator, input));
  const auto dropped = applyKept(input.to(outputType(input, residual)), kept, p);
  return residual.defined() ? residual.add(dropped) : dropped;
}

struct DropoutFunction : torch::autograd::Function<DropoutFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, double p,
                            const OptionalTensor& optionalResidual,
                            const OptionalGenerator& generator) {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    const auto residual = orNone(optionalResidual);
    const auto seed = drawSeed(p, generator, input);
    context->saved_data["p"] = p;
    context->saved_data["has_residual"] = residual.defined();
    context->saved_data["input_type"] = static_cast<int64_t>(input.scalar_type());
    saveSeed(context, seed);
    // An empty tensor, so that a second backward through a freed graph is an error as usual.
    context->save_for_backward({at::Tensor()});
    context->set_materialize_grads(false);
    return drop(input, p, seed, residual, outputType(input, residual));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list result(4);
    const auto& upstream = gradients[0];
    if (!upstream.defined()) return result;
    context->get_saved_variables();
    // An absent residual has no index among the edges that needs_input_grad counts.
    const bool hasResidual = context->saved_data["has_residual"].toBool();
    if (hasResidual && context->needs_input_grad(1)) result[2] = upstream;
    if (!context->needs_input_grad(0)) return result;
    const auto p = context->saved_data["p"].toDouble();
    const auto inputType = static_cast<at::ScalarType>(context->saved_data["input_type"].toInt());
    const auto seed = savedSeed(context);
    // applyKept is linear and made of differentiable ops, so it needs no other form.
    result[0] = c10::GradMode::is_enabled()
                    ? applyKept(upstream, keptMask(upstream, p, seed), p).to(inputType)
                    : drop(upstream, p, seed, {}, inputType);
    return result;
  }
};

at::Tensor dropout(const at::Tensor& input, double p, const OptionalTensor& optionalResidual,
                   OptionalGenerator generator) {
  const auto residual = orNone(optionalResidual);
  checkArguments(input, p, residual, generator);
  // The gradients of clone and sum are sufficient.
  if (p == 0.0) return withoutDropout(input, residual);
  if (mustRecord({input, residual})) {
    return DropoutFunction::apply(input, p, optionalResidual, generator);
  }
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  return drop(input, p, drawSeed(p, generator, input), residual, outputType(input, residual));
}

}  // namespace

void registerDropout(torch::Library& library) {
  defineOp(library, "dropout",
           "(Tensor input, float p, *, Tensor? residual=None, Generator? generator=None) -> Tensor",
           TORCH_FN(dropout), TORCH_FN(reference));
}

}  // namespace torchformer::core
