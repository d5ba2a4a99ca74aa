// Dropout.
//
// Purpose: in training, zero each element with probability p and scale the others by 1 / (1 - p),
//   so that the expected value stays and nothing has to be done at inference.
// Shapes:  input any shape -> output the same shape.
// Formula: y = x * keep / (1 - p), keep ~ Bernoulli(1 - p).   dx = dy * keep / (1 - p).
// Saved:   one byte an element (whether it was kept).
// Hazards: p = 1 must give zeros, not 0 * infinity. The op always drops: whether the model is
//   training is the caller's business. The result is never the input itself, not even for p = 0.

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include "autograd.h"
#include "check.h"
#include "dropout_mask.h"
#include "ops.h"

namespace torchformer::core {

namespace {

using OptionalGenerator = std::optional<at::Generator>;
using torch::autograd::AutogradContext;

void checkArguments(const at::Tensor& input, double p, const OptionalGenerator& generator) {
  checkFloating("dropout", "input", input);
  checkProbability("dropout", "p", p);
  checkGenerator("dropout", generator, input);
}

at::Tensor dropout(const at::Tensor& input, double p, OptionalGenerator generator) {
  checkArguments(input, p, generator);
  if (p == 0.0) return input.clone();
  return applyKept(input, drawKept(input, p, generator), p);
}

struct DropoutFunction : torch::autograd::Function<DropoutFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, double p,
                            const OptionalGenerator& generator) {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    const auto kept = drawKept(input, p, generator);
    context->save_for_backward({kept});
    context->saved_data["p"] = p;
    context->set_materialize_grads(false);
    return applyKept(input, kept, p);
  }

  // Linear in the gradient and made of differentiable ops: no second form is needed for a double
  // backward.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list result(3);
    if (!gradients[0].defined()) return result;
    const auto saved = context->get_saved_variables();
    result[0] = applyKept(gradients[0], saved[0], context->saved_data["p"].toDouble());
    return result;
  }
};

at::Tensor dropoutAutograd(const at::Tensor& input, double p, OptionalGenerator generator) {
  checkArguments(input, p, generator);
  // p = 0: clone's own gradient is all there is to do.
  if (p == 0.0) return input.clone();
  if (mustRecord({input})) return DropoutFunction::apply(input, p, generator);
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  return dropout(input, p, std::move(generator));
}

}  // namespace

void registerDropout(torch::Library& library) {
  library.def("dropout(Tensor input, float p, *, Generator? generator=None) -> Tensor");
  library.impl("dropout",
               torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(dropout)));
  library.impl("dropout", torch::dispatch(c10::DispatchKey::Autograd, TORCH_FN(dropoutAutograd)));
}

}  // namespace torchformer::core
