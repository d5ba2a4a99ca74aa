// Position-wise feed-forward network.
//
// Purpose: the two linear layers of a Transformer block, with ReLU and dropout between them.
// Shapes:  input [..., D], w_1 [F, D], b_1 [F], w_2 [E, F], b_2 [E] -> output [..., E]
//   (weights as in PyTorch's Linear: [out, in]; either bias may be absent; E is D in the paper).
// Formula: h = relu(x W_1^T + b_1) * keep,   y = h W_2^T / (1 - p) + b_2.
// Backward: dh = dy W_2 / (1 - p) where h > 0, else 0;
//   dx = dh W_1,  dW_1 = dh^T x,  db_1 = sum dh,  dW_2 = dy^T h / (1 - p),  db_2 = sum dy.
// Saved:   input, both weights and h. h > 0 says both "ReLU was open" and "not dropped", so
//   neither the values before ReLU nor the dropout mask are stored.
// Hazards: the scale 1 / (1 - p) rides on the second product instead of a pass over h; for half
//   types it is then applied before rounding. Rows may be 0. At 0, ReLU's slope is 0.

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/threshold_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>

#include "autograd.h"
#include "check.h"
#include "dropout_mask.h"
#include "ops.h"

namespace torchformer::core {

namespace {

using OptionalGenerator = std::optional<at::Generator>;
using OptionalTensor = std::optional<at::Tensor>;
using torch::autograd::AutogradContext;

at::Tensor tensorOrUndefined(const OptionalTensor& tensor) { return tensor.value_or(at::Tensor()); }

void checkArguments(const at::Tensor& input, const at::Tensor& w1, const at::Tensor& b1,
                    const at::Tensor& w2, const at::Tensor& b2, double dropoutP,
                    const OptionalGenerator& generator) {
  constexpr auto op = "feed_forward";
  checkFloating(op, "input", input);
  checkMatches(op, "w_1", w1, "input", input);
  checkMatches(op, "w_2", w2, "input", input);
  if (b1.defined()) checkMatches(op, "b_1", b1, "input", input);
  if (b2.defined()) checkMatches(op, "b_2", b2, "input", input);
  TF_CHECK(ERR_SHAPE, input.dim() >= 1, op, ": input must be [..., D], got ", input.sizes());
  TF_CHECK(ERR_SHAPE, w1.dim() == 2 && w1.size(1) == input.size(-1), op, ": w_1 must be [F, ",
           input.size(-1), "] for an input of ", input.sizes(), ", got ", w1.sizes());
  TF_CHECK(ERR_SHAPE, w2.dim() == 2 && w2.size(1) == w1.size(0), op, ": w_2 must be [E, ",
           w1.size(0), "] for a w_1 of ", w1.sizes(), ", got ", w2.sizes());
  TF_CHECK(ERR_SHAPE, !b1.defined() || (b1.dim() == 1 && b1.size(0) == w1.size(0)), op,
           ": b_1 must be [", w1.size(0), "] for a w_1 of ", w1.sizes(), ", got ", b1.sizes());
  TF_CHECK(ERR_SHAPE, !b2.defined() || (b2.dim() == 1 && b2.size(0) == w2.size(0)), op,
           ": b_2 must be [", w2.size(0), "] for a w_2 of ", w2.sizes(), ", got ", b2.sizes());
  checkProbability(op, "dropout_p", dropoutP);
  checkGenerator(op, generator, input);
}

/// [..., D] -> [rows, D]. The row count is spelled out: with D or rows 0, view cannot infer it.
at::Tensor asRows(const at::Tensor& tensor) {
  return tensor.dim() == 1 ? tensor.unsqueeze(0) : tensor.flatten(0, -2);
}

/// a [n, k] times b [k, m], scaled, plus a bias [m] when there is one.
at::Tensor scaledProduct(const at::Tensor& a, const at::Tensor& b, double scale,
                         const at::Tensor& bias = {}) {
  if (bias.defined()) return at::addmm(bias, a, b, /*beta=*/1, /*alpha=*/scale);
  if (scale == 1.0) return at::mm(a, b);
  return at::empty({a.size(0), b.size(1)}, a.options()).addmm_(a, b, /*beta=*/0, /*alpha=*/scale);
}

at::Tensor withLastSize(const at::Tensor& rows, const at::Tensor& like, int64_t last) {
  auto sizes = like.sizes().vec();
  sizes.back() = last;
  return rows.view(sizes);
}

struct Result {
  at::Tensor output;
  at::Tensor hidden;  // [rows, F], after ReLU and dropping, before scaling
};

Result forwardPass(const at::Tensor& input, const at::Tensor& w1, const at::Tensor& b1,
                   const at::Tensor& w2, const at::Tensor& b2, double dropoutP,
                   const OptionalGenerator& generator) {
  const auto hidden = scaledProduct(asRows(input), w1.t(), 1.0, b1).relu_();
  if (dropoutP > 0.0) hidden.mul_(drawKept(hidden, dropoutP, generator));
  const auto output = scaledProduct(hidden, w2.t(), survivorScale(dropoutP), b2);
  return {withLastSize(output, input, w2.size(0)), hidden};
}

struct Wanted {
  bool input, w1, w2, b1, b2;
};

/// Gradients in the order input, w_1, w_2, b_1, b_2.
variable_list backwardPass(const at::Tensor& gradOutput, const at::Tensor& input,
                           const at::Tensor& w1, const at::Tensor& w2, const at::Tensor& hidden,
                           double dropoutP, const Wanted& wanted) {
  const double scale = survivorScale(dropoutP);
  const auto upstream = asRows(gradOutput);
  variable_list result(5);
  if (wanted.w2) result[2] = scaledProduct(upstream.t(), hidden, scale);
  if (wanted.b2) result[4] = upstream.sum({0});
  if (!wanted.input && !wanted.w1 && !wanted.b1) return result;

  const auto gradHidden =
      at::threshold_backward(scaledProduct(upstream, w2, scale), hidden, /*threshold=*/0);
  if (wanted.input) result[0] = at::mm(gradHidden, w1).view(input.sizes());
  if (wanted.w1) result[1] = at::mm(gradHidden.t(), asRows(input));
  if (wanted.b1) result[3] = gradHidden.sum({0});
  return result;
}

/// The formula in plain ops. `kept` undefined: no dropout.
at::Tensor composed(const at::Tensor& input, const at::Tensor& w1, const at::Tensor& b1,
                    const at::Tensor& w2, const at::Tensor& b2, const at::Tensor& kept,
                    double dropoutP) {
  auto hidden = at::relu(at::linear(asRows(input), w1, b1));
  if (kept.defined()) hidden = applyKept(hidden, kept, dropoutP);
  return withLastSize(at::linear(hidden, w2, b2), input, w2.size(0));
}

struct FeedForwardFunction : torch::autograd::Function<FeedForwardFunction> {
  // The biases come last: absent ones take no place among the edges that needs_input_grad counts.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& w1,
                            const at::Tensor& w2, const OptionalTensor& b1,
                            const OptionalTensor& b2, double dropoutP,
                            const OptionalGenerator& generator) {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    const auto bias1 = tensorOrUndefined(b1);
    const auto bias2 = tensorOrUndefined(b2);
    const auto result = forwardPass(input, w1, bias1, w2, bias2, dropoutP, generator);
    context->save_for_backward({input, w1, w2, bias1, bias2, result.hidden});
    context->saved_data["dropout_p"] = dropoutP;
    context->set_materialize_grads(false);
    return result.output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list result(7);
    if (!gradients[0].defined()) return result;
    const auto saved = context->get_saved_variables();
    const auto& [input, w1, w2, b1, b2, hidden] =
        std::tie(saved[0], saved[1], saved[2], saved[3], saved[4], saved[5]);
    const double dropoutP = context->saved_data["dropout_p"].toDouble();
    variable_list found;
    if (c10::GradMode::is_enabled()) {
      // Where h is 0 both ReLU and dropout let nothing through, whichever of them made it 0: as the
      // dropout mask of the readable form it gives the same values and derivatives.
      const auto kept = dropoutP > 0.0 ? hidden != 0 : at::Tensor();
      found = differentiableGradients(
          [&](const variable_list& inputs) -> variable_list {
            return {
                composed(inputs[0], inputs[1], inputs[3], inputs[2], inputs[4], kept, dropoutP)};
          },
          {input, w1, w2, b1, b2}, gradients);
    } else {
      const size_t firstBias = 3;
      const size_t secondBias = firstBias + (b1.defined() ? 1 : 0);
      const Wanted wanted{context->needs_input_grad(0), context->needs_input_grad(1),
                          context->needs_input_grad(2),
                          b1.defined() && context->needs_input_grad(firstBias),
                          b2.defined() && context->needs_input_grad(secondBias)};
      found = backwardPass(gradients[0], input, w1, w2, hidden, dropoutP, wanted);
    }
    for (size_t i = 0; i < found.size(); ++i) result[i] = std::move(found[i]);
    return result;
  }
};

at::Tensor feedForward(const at::Tensor& input, const at::Tensor& w1, const OptionalTensor& b1,
                       const at::Tensor& w2, const OptionalTensor& b2, double dropoutP,
                       OptionalGenerator generator) {
  const auto bias1 = tensorOrUndefined(b1);
  const auto bias2 = tensorOrUndefined(b2);
  checkArguments(input, w1, bias1, w2, bias2, dropoutP, generator);
  return forwardPass(input, w1, bias1, w2, bias2, dropoutP, generator).output;
}

at::Tensor feedForwardAutograd(const at::Tensor& input, const at::Tensor& w1,
                               const OptionalTensor& b1, const at::Tensor& w2,
                               const OptionalTensor& b2, double dropoutP,
                               OptionalGenerator generator) {
  const auto bias1 = tensorOrUndefined(b1);
  const auto bias2 = tensorOrUndefined(b2);
  checkArguments(input, w1, bias1, w2, bias2, dropoutP, generator);
  if (mustRecord({input, w1, bias1, w2, bias2})) {
    return FeedForwardFunction::apply(input, w1, w2, b1, b2, dropoutP, generator);
  }
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  return forwardPass(input, w1, bias1, w2, bias2, dropoutP, generator).output;
}

at::Tensor feedForwardReference(const at::Tensor& input, const at::Tensor& w1,
                                const OptionalTensor& b1, const at::Tensor& w2,
                                const OptionalTensor& b2, double dropoutP,
                                OptionalGenerator generator) {
  const auto bias1 = tensorOrUndefined(b1);
  const auto bias2 = tensorOrUndefined(b2);
  checkArguments(input, w1, bias1, w2, bias2, dropoutP, generator);
  at::Tensor kept;
  if (dropoutP > 0.0) {
    const auto rows = asRows(input);
    kept = drawKept(at::empty({rows.size(0), w1.size(0)}, input.options()), dropoutP, generator);
  }
  return composed(input, w1, bias1, w2, bias2, kept, dropoutP);
}

}  // namespace

void registerFeedForward(torch::Library& library) {
  const std::string signature =
      "(Tensor input, Tensor w_1, Tensor? b_1, Tensor w_2, Tensor? b_2, float dropout_p=0.0, *, "
      "Generator? generator=None) -> Tensor";
  library.def(("feed_forward" + signature).c_str());
  library.impl("feed_forward",
               torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(feedForward)));
  library.impl("feed_forward",
               torch::dispatch(c10::DispatchKey::Autograd, TORCH_FN(feedForwardAutograd)));
  library.def(("feed_forward_reference" + signature).c_str());
  library.impl(
      "feed_forward_reference",
      torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, TORCH_FN(feedForwardReference)));
}

}  // namespace torchformer::core
