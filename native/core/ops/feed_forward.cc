// Position-wise feed-forward network.
//
// Purpose: the two linear layers of a Transformer block, with an activation and dropout between
//   them.
// Shapes:  input [..., D], w_1 [F, D], b_1 [F], w_2 [E, F], b_2 [E] -> output [..., E]; for swiglu
//   also w_3 [F, D], b_3 [F] (weights as in PyTorch's Linear: [out, in]; any bias may be absent; E
//   is D in the paper).
// Formula: a = x W_1^T + b_1,   y = h W_2^T / (1 - p) + b_2, where
//   relu:   h = max(a, 0) * keep          gelu: h = a Phi(a) * keep
//   swiglu: h = silu(a) * c * keep,   c = x W_3^T + b_3.
// Backward: g = dy W_2 / (1 - p),   dW_2 = dy^T h / (1 - p),   db_2 = sum dy,
//   relu:   da = g where h > 0, else 0    gelu: da = g gelu'(a) where kept, else 0
//   swiglu: da = g c silu'(a),   dc = g silu(a) where kept, else 0
//   dx = da W_1 + dc W_3,   dW_1 = da^T x,   db_1 = sum da,   dW_3 = dc^T x,   db_3 = sum dc.
// Saved:   input, the weights, and as little of the hidden layer as the backward needs; the dropout
//   mask is never stored.
//   relu:   h. h > 0 means both "ReLU was active" and "not dropped".
//   gelu:   a, with `closedValue` in dropped elements, where value and slope are then exactly 0;
//           h is computed again in the backward, one pass besides three matrix products.
//   swiglu: a in the same way, and c.
// products: as in linear.cc; the hidden layer has the dtype of the output.
// Hazards: the scale 1 / (1 - p) is fused into the second product instead of a pass over h; for
//   half types it is then applied before rounding. There may be 0 rows. At 0, ReLU's slope is 0.

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/threshold_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <string_view>
#include <utility>

#include "core/device/activation_dropout.h"
#include "core/device/dropout.h"
#include "core/ops/ops.h"
#include "core/product/product.h"
#include "core/support/activation.h"
#include "core/support/autograd.h"
#include "core/support/check.h"
#include "core/support/optional.h"
#include "core/support/precision.h"
#include "core/support/rows.h"

namespace torchformer::core {

namespace {

using torch::autograd::AutogradContext;

/// The tensors of one call; undefined if absent.
struct FeedForwardTensors {
  at::Tensor input, w1, b1, w2, b2, w3, b3;

  /// The order in which autograd sees them: required tensors come first.
  variable_list list() const { return {input, w1, w2, b1, b2, w3, b3}; }
  static FeedForwardTensors fromList(const variable_list& list) {
    return {list[0], list[1], list[3], list[2], list[4], list[5], list[6]};
  }
  static constexpr size_t count = 7;
};

/// The operations between the two layers.
struct Hidden {
  Activation activation;
  double dropoutP;
  Products products;

  double scale() const { return survivorScale(dropoutP); }
  /// Of the hidden layer and of the output.
  at::ScalarType resultType(const at::Tensor& input) const {
    return productsResultType(products, input.scalar_type());
  }
};

FeedForwardTensors gathered(const at::Tensor& input, const at::Tensor& w1, const OptionalTensor& b1,
                            const at::Tensor& w2, const OptionalTensor& b2,
                            const OptionalTensor& w3, const OptionalTensor& b3) {
  return {input, w1, orNone(b1), w2, orNone(b2), orNone(w3), orNone(b3)};
}

void checkBias(const char* name, const at::Tensor& bias, const char* weightName,
               const at::Tensor& weight) {
  TF_CHECK(ERR_SHAPE, !bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)),
           "feed_forward: ", name, " must be [", weight.size(0), "] for a ", weightName, " of ",
           weight.sizes(), ", got ", bias.sizes());
}

void checkArguments(const FeedForwardTensors& t, const Hidden& hidden,
                    const OptionalGenerator& generator) {
  constexpr auto op = "feed_forward";
  const bool gated = hidden.activation == Activation::swiglu;
  TF_CHECK(ERR_ARGUMENT, gated || (!t.w3.defined() && !t.b3.defined()), op,
           ": w_3 and b_3 belong to activation 'swiglu' only; leave them out");
  TF_CHECK(ERR_ARGUMENT, !gated || t.w3.defined(), op,
           ": activation 'swiglu' needs w_3, the weight of its gate");
  checkFloating(op, "input", t.input);
  checkWeight(op, "w_1", t.w1, "input", t.input, hidden.products);
  checkWeight(op, "w_2", t.w2, "input", t.input, hidden.products);
  if (t.b1.defined()) checkMatches(op, "b_1", t.b1, "w_1", t.w1);
  if (t.b2.defined()) checkMatches(op, "b_2", t.b2, "w_1", t.w1);
  if (t.w3.defined()) checkWeight(op, "w_3", t.w3, "input", t.input, hidden.products);
  if (t.b3.defined()) checkMatches(op, "b_3", t.b3, "w_1", t.w1);
  TF_CHECK(ERR_SHAPE, t.input.dim() >= 1, op, ": input must be [..., D], got ", t.input.sizes());
  TF_CHECK(ERR_SHAPE, t.w1.dim() == 2 && t.w1.size(1) == t.input.size(-1), op, ": w_1 must be [F, ",
           t.input.size(-1), "] for an input of ", t.input.sizes(), ", got ", t.w1.sizes());
  TF_CHECK(ERR_SHAPE, t.w2.dim() == 2 && t.w2.size(1) == t.w1.size(0), op, ": w_2 must be [E, ",
           t.w1.size(0), "] for a w_1 of ", t.w1.sizes(), ", got ", t.w2.sizes());
  TF_CHECK(ERR_SHAPE, !t.w3.defined() || t.w3.sizes() == t.w1.sizes(), op,
           ": w_3 must have the shape of w_1, ", t.w1.sizes(), ", got ", t.w3.sizes());
  checkBias("b_1", t.b1, "w_1", t.w1);
  checkBias("b_2", t.b2, "w_2", t.w2);
  checkBias("b_3", t.b3, "w_3", t.w3);
  checkProbability(op, "dropout_p", hidden.dropoutP);
  checkGenerator(op, generator);
}

struct FeedForwardResult {
  at::Tensor output;
  at::Tensor main;  // [rows, F], relu: h before scaling; else a, closed where dropped
  at::Tensor gate;  // [rows, F], swiglu: c; else undefined
};

/// Whether ReLU, its slope and dropout are steps of the products.
bool isFused(const Hidden& hidden, const at::Tensor& rows, at::ScalarType dtype) {
  return hidden.activation == Activation::relu && hasEpilogues(rows, dtype);
}

FeedForwardResult forwardPass(const FeedForwardTensors& t, const Hidden& hidden,
                              const OptionalGenerator& generator, bool recorded) {
  const auto rows = asRows(t.input);
  const bool gated = hidden.activation == Activation::swiglu;
  const auto dtype = hidden.resultType(rows);
  const auto x = operand(rows, hidden.products);
  const auto first = [&](const at::Tensor& weight, const Epilogue& epilogue) {
    return product(x, operand(weight, hidden.products).t(), dtype, epilogue,
                   forwardUse(hidden.products, recorded, weight));
  };
  const auto seed = drawSeed(hidden.dropoutP, generator, rows);
  at::Tensor main, gate, h;
  if (isFused(hidden, rows, dtype)) {
    Epilogue epilogue{.bias = t.b1, .relu = true, .dropoutP = hidden.dropoutP};
    epilogue.dropoutSeed = seedOf(seed.number, seed.optionalSlot());
    h = main = first(t.w1, epilogue);
  } else {
    const bool addsLater = addsBiases(rows);
    main = first(t.w1, {.bias = addsLater ? at::Tensor() : t.b1});
    if (gated) gate = first(t.w3, {.bias = addsLater ? at::Tensor() : t.b3});
    h = activateAndDrop(
        hidden.activation,
        {main, gate, addsLater ? t.b1 : at::Tensor(), addsLater && gated ? t.b3 : at::Tensor()},
        hidden.dropoutP, seed);
  }
  const auto output =
      product(operand(h, hidden.products), operand(t.w2, hidden.products).t(), dtype,
              {.scale = hidden.scale(), .bias = t.b2}, forwardUse(hidden.products, recorded, t.w2));
  return {withLastSize(output, t.input, t.w2.size(0)), main, gate};
}

/// Which gradients are requested.
struct FeedForwardWanted {
  bool input, w1, b1, w2, b2, w3, b3;

  bool anyOfHidden() const { return input || w1 || b1 || w3 || b3; }
};

struct HiddenGradients {
  at::Tensor main;  // da
  at::Tensor gate;  // dc; undefined without a gate
};

/// From dy to da and dc. Also sets `second`, the gradients of the second layer, of which that of
/// the weight needs h, which exists only here.
HiddenGradients hiddenBackward(const at::Tensor& dy, const FeedForwardTensors& t,
                               const Hidden& hidden, const at::Tensor& main, const at::Tensor& gate,
                               const FeedForwardWanted& wanted, LayerGradients& second) {
  const bool gated = hidden.activation == Activation::swiglu;
  const auto dtype = dy.scalar_type();
  const auto upstream = operand(dy, hidden.products);
  // relu saved h itself; the others recompute silu(a) or h.
  at::Tensor activated = main;
  if (gated) {
    activated = at::silu(main);
  } else if (hidden.activation == Activation::gelu && wanted.w2) {
    activated = activate(hidden.activation, main, gate);
  }
  const auto use = backwardUse(hidden.products);
  {
    const auto h =
        wanted.w2 ? operand(gated ? activated * gate : activated, hidden.products) : at::Tensor();
    second = layerGradients(dy, upstream, h, t.w2.scalar_type(), {wanted.w2, wanted.b2},
                            hidden.scale(), use);
  }
  if (!wanted.anyOfHidden()) return {};
  // Only swiglu still needs it; otherwise free the memory before the next large product.
  if (!gated) activated.reset();

  Epilogue epilogue{.scale = hidden.scale()};
  const bool isFusedHere = isFused(hidden, dy, dtype);
  if (isFusedHere) epilogue.positive = main;
  auto gradient = product(upstream, operand(t.w2, hidden.products), dtype, epilogue, use);
  if (isFusedHere) return {gradient, {}};
  switch (hidden.activation) {
    case Activation::relu:
      return {at::threshold_backward(gradient, main, /*threshold=*/0), {}};
    case Activation::gelu:
      return {at::gelu_backward_out(gradient, gradient, main), {}};
    default: {
      const auto gradGate = activated.mul_(gradient);
      gradient.mul_(gate);
      return {at::silu_backward_out(gradient, gradient, main), gradGate};
    }
  }
}

/// Gradients in the order of FeedForwardTensors::list.
variable_list backwardPass(const at::Tensor& gradOutput, const FeedForwardTensors& t,
                           const Hidden& hidden, const at::Tensor& main, const at::Tensor& gate,
                           const FeedForwardWanted& wanted) {
  const auto upstream = asRows(gradOutput);
  const auto rows = asRows(t.input);
  variable_list result(FeedForwardTensors::count);
  LayerGradients second;
  const auto gradients = hiddenBackward(upstream, t, hidden, main, gate, wanted, second);
  result[2] = std::move(second.weight);
  result[4] = std::move(second.bias);
  const auto dtype = t.input.scalar_type();
  // Parameters may have a wider dtype than the activations.
  const auto weightType = t.w1.scalar_type();
  const auto x = operand(rows, hidden.products);
  const auto da = operand(gradients.main, hidden.products);
  const auto dc = operand(gradients.gate, hidden.products);
  const auto use = backwardUse(hidden.products);
  if (wanted.input) {
    auto gradInput = product(da, operand(t.w1, hidden.products), dtype, {}, use);
    if (gate.defined()) addProduct_(gradInput, dc, operand(t.w3, hidden.products), /*beta=*/1);
    result[0] = gradInput.view(t.input.sizes());
  }
  const auto setLayer = [&](const at::Tensor& gradient, const at::Tensor& g,
                            const LayerGradientsWanted& wantedHere, size_t weight, size_t bias) {
    auto found = layerGradients(gradient, g, x, weightType, wantedHere, 1.0, use);
    result[weight] = std::move(found.weight);
    result[bias] = std::move(found.bias);
  };
  setLayer(gradients.main, da, {wanted.w1, wanted.b1}, 1, 3);
  setLayer(gradients.gate, dc, {wanted.w3, wanted.b3}, 5, 6);
  return result;
}

/// The formula in plain ops. `kept` undefined: no dropout.
at::Tensor composed(const FeedForwardTensors& t, const Hidden& hidden, const at::Tensor& kept) {
  const auto rows = asRows(t.input).to(t.w1.scalar_type());
  const auto gate = t.w3.defined() ? at::linear(rows, t.w3, t.b3) : at::Tensor();
  auto h = activate(hidden.activation, at::linear(rows, t.w1, t.b1), gate);
  if (kept.defined()) h = applyKept(h, kept, hidden.dropoutP);
  return withLastSize(at::linear(h, t.w2, t.b2), t.input, t.w2.size(0))
      .to(hidden.resultType(t.input));
}

/// The dropout mask, reconstructed from the tensors that the forward pass saved. Where relu's h is
/// 0, or `a` is `closedValue`, the result is 0 whether dropped or not, so treating it as dropped
/// gives the same values and derivatives.
at::Tensor keptFrom(const at::Tensor& main, const Hidden& hidden) {
  if (hidden.dropoutP == 0.0) return {};
  return main != (hidden.activation == Activation::relu ? 0.0 : closedValue);
}

struct FeedForwardFunction : torch::autograd::Function<FeedForwardFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const at::Tensor& w1,
                            const at::Tensor& w2, const OptionalTensor& b1,
                            const OptionalTensor& b2, const OptionalTensor& w3,
                            const OptionalTensor& b3, const Hidden& hidden,
                            const OptionalGenerator& generator) {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    const auto tensors = gathered(input, w1, b1, w2, b2, w3, b3);
    const auto result = forwardPass(tensors, hidden, generator, /*recorded=*/true);
    auto saved = tensors.list();
    saved.push_back(result.main);
    saved.push_back(result.gate);
    context->save_for_backward(std::move(saved));
    context->saved_data["activation"] = static_cast<int64_t>(hidden.activation);
    context->saved_data["dropout_p"] = hidden.dropoutP;
    context->saved_data["products"] = static_cast<int64_t>(hidden.products);
    context->set_materialize_grads(false);
    return result.output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    constexpr size_t others = 2;  // hidden and generator, which have no gradient
    variable_list result(FeedForwardTensors::count + others);
    if (!gradients[0].defined()) return result;
    const auto saved = context->get_saved_variables();
    const auto tensors = FeedForwardTensors::fromList(saved);
    const auto& main = saved[FeedForwardTensors::count];
    const auto& gate = saved[FeedForwardTensors::count + 1];
    const Hidden hidden{static_cast<Activation>(context->saved_data["activation"].toInt()),
                        context->saved_data["dropout_p"].toDouble(),
                        static_cast<Products>(context->saved_data["products"].toInt())};
    variable_list found;
    if (c10::GradMode::is_enabled()) {
      const auto kept = keptFrom(main, hidden);
      found = differentiableGradients(
          [&](const variable_list& inputs) -> variable_list {
            return {composed(FeedForwardTensors::fromList(inputs), hidden, kept)};
          },
          tensors.list(), gradients);
    } else {
      found = backwardPass(gradients[0], tensors, hidden, main, gate, wantedOf(context, tensors));
    }
    for (size_t i = 0; i < found.size(); ++i) result[i] = std::move(found[i]);
    return result;
  }

  /// Absent tensors have no index among the edges that needs_input_grad counts.
  static FeedForwardWanted wantedOf(AutogradContext* context, const FeedForwardTensors& tensors) {
    size_t edge = 0;
    const auto next = [&](const at::Tensor& tensor) {
      return tensor.defined() && context->needs_input_grad(edge++);
    };
    FeedForwardWanted wanted{};
    wanted.input = next(tensors.input);
    wanted.w1 = next(tensors.w1);
    wanted.w2 = next(tensors.w2);
    wanted.b1 = next(tensors.b1);
    wanted.b2 = next(tensors.b2);
    wanted.w3 = next(tensors.w3);
    wanted.b3 = next(tensors.b3);
    return wanted;
  }
};

at::Tensor feedForward(const at::Tensor& input, const at::Tensor& w1, const OptionalTensor& b1,
                       const at::Tensor& w2, const OptionalTensor& b2, double dropoutP,
                       std::string_view activation, const OptionalTensor& w3,
                       const OptionalTensor& b3, std::string_view products,
                       OptionalGenerator generator) {
  const Hidden hidden{parseActivation("feed_forward", activation), dropoutP,
                      parseProducts("feed_forward", products)};
  const auto t = gathered(input, w1, b1, w2, b2, w3, b3);
  checkArguments(t, hidden, generator);
  if (mustRecord({t.input, t.w1, t.b1, t.w2, t.b2, t.w3, t.b3})) {
    return FeedForwardFunction::apply(input, w1, w2, b1, b2, w3, b3, hidden, generator);
  }
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  return forwardPass(t, hidden, generator, /*recorded=*/false).output;
}

at::Tensor feedForwardReference(const at::Tensor& input, const at::Tensor& w1,
                                const OptionalTensor& b1, const at::Tensor& w2,
                                const OptionalTensor& b2, double dropoutP,
                                std::string_view activation, const OptionalTensor& w3,
                                const OptionalTensor& b3, std::string_view products,
                                OptionalGenerator generator) {
  const Hidden hidden{parseActivation("feed_forward", activation), dropoutP,
                      parseProducts("feed_forward", products)};
  const auto tensors = gathered(input, w1, b1, w2, b2, w3, b3);
  checkArguments(tensors, hidden, generator);
  at::Tensor kept;
  if (dropoutP > 0.0) {
    const auto rows = asRows(input);
    kept = keptMask(at::empty({rows.size(0), w1.size(0)}, input.options()), dropoutP,
                    drawSeed(dropoutP, generator, rows));
  }
  return composed(tensors, hidden, kept);
}

}  // namespace

void registerFeedForward(torch::Library& library) {
  defineOp(
      library, "feed_forward",
      "(Tensor input, Tensor w_1, Tensor? b_1, Tensor w_2, Tensor? b_2, float dropout_p=0.0, *, "
      "str activation=\"relu\", Tensor? w_3=None, Tensor? b_3=None, str products=\"own\", "
      "Generator? generator=None) -> Tensor",
      TORCH_FN(feedForward), TORCH_FN(feedForwardReference));
}

}  // namespace torchformer::core
