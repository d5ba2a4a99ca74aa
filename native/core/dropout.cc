// Dropout.
//
// Purpose: in training, zero each element with probability p and scale the others by 1 / (1 - p),
//   so that the expected value stays and nothing has to be done at inference.
// Shapes:  input any shape -> output the same shape.
// Formula: y = x * keep / (1 - p), keep ~ Bernoulli(1 - p).   dx = dy * keep / (1 - p).
// Saved:   the seed of the mask, which backward makes again (float32 and float64 on the CPU); else
//   one byte an element (whether it was kept).
// Hazards: p = 1 must give zeros, not 0 * infinity. The op always drops: whether the model is
//   training is the caller's business. The result is never the input itself, not even for p = 0.

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include "autograd.h"
#include "check.h"
#include "counter_random.h"
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
  if (takesSeed(input)) return applySeed(input, p, drawSeed(generator));
  return applyKept(input, drawKept(input, p, generator), p);
}

struct DropoutFunction : torch::autograd::Function<DropoutFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, double p,
                            const OptionalGenerator& generator) {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    context->saved_data["p"] = p;
    context->set_materialize_grads(false);
    if (takesSeed(input)) {
      const auto seed = drawSeed(generator);
      context->saved_data["seed"] = static_cast<int64_t>(seed);
      // Nothing, but with it a second backward through a freed graph is an error as everywhere.
      context->save_for_backward({at::Tensor()});
      return applySeed(input, p, seed);
    }
    const auto kept = drawKept(input, p, generator);
    context->save_for_backward({kept});
    return applyKept(input, kept, p);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list result(3);
    const auto& upstream = gradients[0];
    if (!upstream.defined()) return result;
    const auto saved = context->get_saved_variables();
    const auto p = context->saved_data["p"].toDouble();
    const auto entry = context->saved_data.find("seed");
    if (entry == context->saved_data.end()) {
      result[0] = applyKept(upstream, saved[0], p);
      return result;
    }
    const auto seed = static_cast<uint64_t>(entry->second.toInt());
    // applyKept is linear and made of differentiable ops: it is its own second form.
    result[0] = c10::GradMode::is_enabled()
                    ? applyKept(upstream, keptFromSeed(upstream, p, seed), p)
                    : applySeed(upstream, p, seed);
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
