// Linear layer.
//
// Purpose: the layer with most of a Transformer's arithmetic, with its products computed by the
//   library and in the precision that product/product.h chooses.
// Shapes:  input [..., D], weight [E, D], bias [E] -> output [..., E].
// Formula: y = x W^T + b.
// Backward: dx = dy W,   dW = dy^T x,   db = sum dy.
// Saved:   input and weight.
// Hazards: with products "bfloat16" x, W and dy are rounded for the products; weights, sums and
//   results stay float32. With "bfloat16_results" the output is rounded too, and x may be bfloat16
//   beside float32 weights, whose gradients are float32. There may be 0 rows.

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/linear.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <string_view>
#include <utility>

#include "core/ops/ops.h"
#include "core/product/product.h"
#include "core/support/autograd.h"
#include "core/support/check.h"
#include "core/support/optional.h"
#include "core/support/rows.h"

namespace torchformer::core {

namespace {

using torch::autograd::AutogradContext;

void checkArguments(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                    Products products) {
  constexpr auto op = "linear";
  checkFloating(op, "input", input);
  checkWeight(op, "weight", weight, "input", input, products);
  TF_CHECK(ERR_SHAPE, input.dim() >= 1, op, ": input must be [..., D], got ", input.sizes());
  TF_CHECK(ERR_SHAPE, weight.dim() == 2 && weight.size(1) == input.size(-1), op,
           ": weight must be [E, ", input.size(-1), "] for an input of ", input.sizes(), ", got ",
           weight.sizes());
  if (!bias.defined()) return;
  checkMatches(op, "bias", bias, "weight", weight);
  TF_CHECK(ERR_SHAPE, bias.dim() == 1 && bias.size(0) == weight.size(0), op, ": bias must be [",
           weight.size(0), "] for a weight of ", weight.sizes(), ", got ", bias.sizes());
}

at::Tensor forwardPass(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                       Products products, bool recorded) {
  const auto output = product(operand(asRows(input), products), operand(weight, products).t(),
                              productsResultType(products, input.scalar_type()), {.bias = bias},
                              forwardUse(products, recorded, weight));
  return withLastSize(output, input, weight.size(0));
}

/// The formula in plain ops.
at::Tensor composed(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                    Products products) {
  return at::linear(input.to(weight.scalar_type()), weight, bias)
      .to(productsResultType(products, input.scalar_type()));
}

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& weight, const OptionalTensor& bias,
                            Products products) {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    context->save_for_backward({input, weight});
    context->saved_data["products"] = static_cast<int64_t>(products);
    context->saved_data["bias"] = bias.has_value() && bias->defined();
    context->set_materialize_grads(false);
    return forwardPass(input, weight, orNone(bias), products, /*recorded=*/true);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list result(4);
    if (!gradients[0].defined()) return result;
    const auto saved = context->get_saved_variables();
    const auto& [input, weight] = std::tie(saved[0], saved[1]);
    // Absent tensors have no index among the edges that needs_input_grad counts.
    const bool wantsBias = context->saved_data["bias"].toBool() && context->needs_input_grad(2);
    const auto products = static_cast<Products>(context->saved_data["products"].toInt());
    const auto rows = asRows(gradients[0]);
    if (c10::GradMode::is_enabled()) {
      auto found = differentiableGradients(
          [products](const variable_list& inputs) -> variable_list {
            return {composed(inputs[0], inputs[1], {}, products)};
          },
          {input, weight}, gradients);
      result[0] = found[0];
      result[1] = found[1];
      if (wantsBias) result[2] = rows.sum({0}, /*keepdim=*/false, weight.scalar_type());
      return result;
    }
    const auto upstream = operand(rows, products);
    const auto use = backwardUse(products);
    if (context->needs_input_grad(0)) {
      result[0] = product(upstream, operand(weight, products), input.scalar_type(), {}, use)
                      .view(input.sizes());
    }
    const LayerGradientsWanted wanted{context->needs_input_grad(1), wantsBias};
    auto found = layerGradients(rows, upstream, operand(asRows(input), products),
                                weight.scalar_type(), wanted, 1.0, use);
    result[1] = std::move(found.weight);
    result[2] = std::move(found.bias);
    return result;
  }
};

at::Tensor linear(const at::Tensor& input, const at::Tensor& weight, const OptionalTensor& bias,
                  std::string_view productsName) {
  const auto products = parseProducts("linear", productsName);
  checkArguments(input, weight, orNone(bias), products);
  if (mustRecord({input, weight, orNone(bias)})) {
    return LinearFunction::apply(input, weight, bias, products);
  }
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  return forwardPass(input, weight, orNone(bias), products, /*recorded=*/false);
}

at::Tensor linearReference(const at::Tensor& input, const at::Tensor& weight,
                           const OptionalTensor& bias, std::string_view productsName) {
  const auto products = parseProducts("linear", productsName);
  checkArguments(input, weight, orNone(bias), products);
  return composed(input, weight, orNone(bias), products);
}

}  // namespace

void registerLinear(torch::Library& library) {
  defineOp(library, "linear",
           "(Tensor input, Tensor weight, Tensor? bias=None, *, str products=\"own\") -> Tensor",
           TORCH_FN(linear), TORCH_FN(linearReference));
}

}  // namespace torchformer::core
