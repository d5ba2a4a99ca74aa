// The last linear layer and the cross-entropy in one.
//
// Purpose: the training loss of a model whose vocabulary is its largest dimension. Logits for all
//   rows would be the largest tensor of the whole step; here they exist for a few rows at a time,
//   and the gradients are computed from them while they are available.
// Shapes:  input [N, D], weight [V, D], bias [V], target [N] ids -> loss scalar, token losses [N],
//   number of rows whose best logit (the first of equal ones) is the target's (scalar, int64).
// Formula: z = x W^T + b,  loss of a row = -sum t log softmax(z),  loss = scale * sum over the
// rows;
//   a row whose target is `ignore_index` is not counted. With label smoothing s (paper,
//   section 5.4):
//   - "cross_entropy": t = (1 - s) at the target + s / V everywhere;
//   - "kl_divergence": t = 1 - s at the target, 0 at `ignore_index` if it is a class, and s shared
//     equally by the others; the loss of a row also has + sum t log t, so that its minimum is 0.
// Backward: dz = scale * (softmax(z) - t),  dx = dz W,  dW = dz^T x,  db = sum dz, all computed in
//   the forward pass; the backward multiplies them by the upstream gradient, a scalar.
//   Weight and bias may be float32 beside an input of a half type: master weights. The factors of
//   the products are then rounded to that type; dW and db are float32.
// Saved:   dx, dW, db, and the inputs for a second derivative.
// Hazards:
//   - Softmax and loss are computed in float32 for half types, whose logits would tie.
//   - On the CPU the ids are checked before the first product: an invalid one would read outside
//     the logits. On a GPU the loss of its row is NaN (see device/linear_cross_entropy.h).
//   - `scale` exists because dividing by the number of tokens afterwards would cost one pass over
//     dW, which is as large as the weight. With an upstream gradient of 1 nothing is multiplied.
//   - The gradients belong to the call: a second backward through the same loss returns them again.

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <cmath>
#include <string>
#include <string_view>
#include <tuple>

#include "core/device/linear_cross_entropy.h"
#include "core/ops/ops.h"
#include "core/product/product.h"
#include "core/support/autograd.h"
#include "core/support/check.h"
#include "core/support/optional.h"
#include "core/support/precision.h"

namespace torchformer::core {

namespace {

using torch::autograd::AutogradContext;

void checkArguments(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                    const at::Tensor& target, const LossSettings& settings) {
  constexpr auto op = "linear_cross_entropy";
  checkFloating(op, "input", input);
  checkParameter(op, "weight", weight, "input", input);
  TF_CHECK(ERR_SHAPE, input.dim() == 2, op, ": input must be [N, D], got ", input.sizes());
  TF_CHECK(ERR_SHAPE, weight.dim() == 2 && weight.size(1) == input.size(1) && weight.size(0) >= 1,
           op, ": weight must be [V, ", input.size(1), "] for an input of ", input.sizes(),
           ", got ", weight.sizes());
  if (bias.defined()) {
    checkParameter(op, "bias", bias, "input", input);
    TF_CHECK(ERR_SHAPE, bias.dim() == 1 && bias.size(0) == weight.size(0), op, ": bias must be [",
             weight.size(0), "] for a weight of ", weight.sizes(), ", got ", bias.sizes());
  }
  TF_CHECK(ERR_DTYPE, target.layout() == at::kStrided && target.scalar_type() == at::kLong, op,
           ": target must be dense int64 ids, got ", target.scalar_type());
  TF_CHECK(ERR_DEVICE, target.device() == input.device(), op,
           ": target must be on the device of input (", input.device(), "), got ", target.device());
  TF_CHECK(ERR_SHAPE, target.dim() == 1 && target.size(0) == input.size(0), op,
           ": target must be [", input.size(0), "] for an input of ", input.sizes(), ", got ",
           target.sizes());
  TF_CHECK(ERR_ARGUMENT, settings.labelSmoothing >= 0.0 && settings.labelSmoothing <= 1.0, op,
           ": label_smoothing must be from 0 to 1, got ", settings.labelSmoothing);
  const bool hasExcluded = settings.ignoreIndex >= 0 && settings.ignoreIndex < weight.size(0);
  TF_CHECK(
      ERR_ARGUMENT,
      settings.labelSmoothing == 0.0 || settings.smoothingForm == SmoothingForm::crossEntropy ||
          weight.size(0) >= (hasExcluded ? 3 : 2),
      op, ": smoothing_form 'kl_divergence' needs a class other than the target and ",
      "ignore_index, got ", weight.size(0), " classes and ignore_index ", settings.ignoreIndex);
  TF_CHECK(ERR_ARGUMENT, std::isfinite(settings.scale), op, ": scale must be finite, got ",
           settings.scale);
}

/// @throws ERR_INDEX for a target that is neither a class nor ignored. On a GPU, where this would
/// have to synchronize, and for meta tensors nothing is checked.
void checkTargets(const at::Tensor& target, int64_t classes, int64_t ignoreIndex) {
  if (!target.is_cpu()) return;
  const auto dense = target.contiguous();
  const auto* ids = dense.const_data_ptr<int64_t>();
  for (int64_t row = 0; row < target.numel(); ++row) {
    TF_CHECK(ERR_INDEX, (ids[row] >= 0 && ids[row] < classes) || ids[row] == ignoreIndex,
             "linear_cross_entropy: target[", row, "] is ", ids[row], ", but there are ", classes,
             " classes (ignore_index ", ignoreIndex, ")");
  }
}

/// The logits in the dtype of the loss, by plain ops.
at::Tensor composedLogits(const at::Tensor& input, const at::Tensor& weight,
                          const at::Tensor& bias) {
  const auto dtype = input.scalar_type();
  if (weight.scalar_type() == dtype && (!bias.defined() || bias.scalar_type() == dtype)) {
    return widened(at::linear(input, weight, bias));
  }
  return at::linear(widened(input), widened(weight.to(dtype)),
                    bias.defined() ? widened(bias) : bias);
}

SmoothingForm parseSmoothingForm(std::string_view name) {
  if (name == "cross_entropy") return SmoothingForm::crossEntropy;
  TF_CHECK(ERR_ARGUMENT, name == "kl_divergence", "linear_cross_entropy",
           ": smoothing_form must be 'cross_entropy' or 'kl_divergence', got '", std::string(name),
           "'");
  return SmoothingForm::klDivergence;
}

/// The losses of "kl_divergence", by plain ops; `classes` int64 [N] are valid or ignored.
at::Tensor composedDivergences(const at::Tensor& logits, const at::Tensor& classes,
                               const LossSettings& settings) {
  const auto smoothed = settings.smoothedTarget(logits.size(1));
  const auto logs = at::log_softmax(logits, 1);
  const auto counted = classes.ne(settings.ignoreIndex);
  const auto ids = classes.masked_fill(counted.logical_not(), 0).unsqueeze(1);
  auto losses = at::gather(logs, 1, ids).squeeze(1).mul(-smoothed.extra);
  if (smoothed.everywhere > 0.0) {
    auto others = logs.sum(1);
    if (smoothed.excluded >= 0) others = others.sub(logs.select(1, smoothed.excluded));
    losses = losses.sub(others, smoothed.everywhere).add(smoothed.entropy);
  }
  return losses.masked_fill(counted.logical_not(), 0.0);
}

/// The formula in plain ops, on any device. Only the loss is differentiable.
variable_list composed(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                       const at::Tensor& target, const LossSettings& settings) {
  const auto logits = composedLogits(input, weight, bias);
  // On a GPU a target that is not a class would make the device unusable for the process.
  const auto counted = target.ne(settings.ignoreIndex);
  const auto wrong =
      target.is_cpu() ? at::Tensor()
                      : target.lt(0).logical_or_(target.ge(logits.size(1))).logical_and_(counted);
  const auto classes = wrong.defined() ? target.masked_fill(wrong, settings.ignoreIndex) : target;
  auto losses = settings.smoothingForm == SmoothingForm::klDivergence
                    ? composedDivergences(logits, classes, settings)
                    : at::cross_entropy_loss(logits, classes, /*weight=*/{}, at::Reduction::None,
                                             settings.ignoreIndex, settings.labelSmoothing);
  if (wrong.defined()) losses = losses.masked_fill(wrong, std::nan(""));
  const auto correct = logits.detach().argmax(1).eq(target);
  return {losses.sum().mul(settings.scale), losses.detach(), correct.logical_and(counted).sum()};
}

struct LinearCrossEntropyFunction : torch::autograd::Function<LinearCrossEntropyFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& input,
                               const at::Tensor& weight, const OptionalTensor& bias,
                               const at::Tensor& target, const LossSettings& settings) {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    const auto biasOrNone = orNone(bias);
    const auto result = lossAndGradients(input, weight, biasOrNone, target, settings,
                                         {input.requires_grad(), weight.requires_grad(),
                                          biasOrNone.defined() && biasOrNone.requires_grad()});
    context->save_for_backward({input, weight, biasOrNone, target});
    context->saved_data["gradients"] = c10::List<std::optional<at::Tensor>>(
        {optional(result.gradInput), optional(result.gradWeight), optional(result.gradBias)});
    context->saved_data["ignore_index"] = settings.ignoreIndex;
    context->saved_data["label_smoothing"] = settings.labelSmoothing;
    context->saved_data["smoothing_form"] = static_cast<int64_t>(settings.smoothingForm);
    context->saved_data["scale"] = settings.scale;
    context->set_materialize_grads(false);
    context->mark_non_differentiable({result.tokenLosses, result.correct});
    return {result.loss, result.tokenLosses, result.correct};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list result(5);
    const auto& upstream = gradients[0];
    if (!upstream.defined()) return result;
    // Also throws if the graph has already been freed.
    const auto saved = context->get_saved_variables();
    if (c10::GradMode::is_enabled()) {
      const LossSettings settings{
          context->saved_data["ignore_index"].toInt(),
          context->saved_data["label_smoothing"].toDouble(),
          static_cast<SmoothingForm>(context->saved_data["smoothing_form"].toInt()),
          context->saved_data["scale"].toDouble(), Products::own};
      auto found = differentiableGradients(
          [&](const variable_list& inputs) -> variable_list {
            return {composed(inputs[0], inputs[1], inputs[2], saved[3], settings)[0]};
          },
          {saved[0], saved[1], saved[2]}, {upstream});
      for (size_t i = 0; i < found.size(); ++i) result[i] = std::move(found[i]);
      return result;
    }
    // A number on a GPU is not read, because that would wait for all its work.
    const bool isOne = upstream.is_cpu() && upstream.item<double>() == 1.0;
    const auto made = context->saved_data["gradients"].toList();
    // Otherwise autograd would copy a gradient that it could keep: dW is as large as the weight.
    const bool isLast = !torch::autograd::get_current_graph_task_keep_graph();
    if (isLast) context->saved_data.erase("gradients");
    for (size_t i = 0; i < 3; ++i) {
      const c10::IValue value = isLast ? made.extract(i) : made.get(i);
      if (value.isNone()) continue;
      const auto gradient = value.toTensor();
      result[i] = isOne ? gradient : isLast ? gradient.mul_(upstream) : gradient.mul(upstream);
    }
    return result;
  }
};

using Triple = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

Triple toTriple(const variable_list& list) { return {list[0], list[1], list[2]}; }

Triple linearCrossEntropy(const at::Tensor& input, const at::Tensor& weight,
                          const OptionalTensor& bias, const at::Tensor& target, int64_t ignoreIndex,
                          double labelSmoothing, double scale, std::string_view smoothingForm,
                          std::string_view products) {
  const LossSettings settings{ignoreIndex, labelSmoothing, parseSmoothingForm(smoothingForm), scale,
                              parseProducts("linear_cross_entropy", products)};
  const auto biasOrNone = orNone(bias);
  checkArguments(input, weight, biasOrNone, target, settings);
  checkTargets(target, weight.size(0), ignoreIndex);
  // Already differentiable.
  if (!hasLossKernels(input)) {
    return toTriple(composed(input, weight, biasOrNone, target, settings));
  }
  if (mustRecord({input, weight, biasOrNone})) {
    return toTriple(LinearCrossEntropyFunction::apply(input, weight, bias, target, settings));
  }
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  const auto result = lossAndGradients(input, weight, biasOrNone, target, settings, {});
  return {result.loss, result.tokenLosses, result.correct};
}

Triple linearCrossEntropyReference(const at::Tensor& input, const at::Tensor& weight,
                                   const OptionalTensor& bias, const at::Tensor& target,
                                   int64_t ignoreIndex, double labelSmoothing, double scale,
                                   std::string_view smoothingForm, std::string_view products) {
  const LossSettings settings{ignoreIndex, labelSmoothing, parseSmoothingForm(smoothingForm), scale,
                              parseProducts("linear_cross_entropy", products)};
  const auto biasOrNone = orNone(bias);
  checkArguments(input, weight, biasOrNone, target, settings);
  return toTriple(composed(input, weight, biasOrNone, target, settings));
}

}  // namespace

void registerLinearCrossEntropy(torch::Library& library) {
  defineOp(library, "linear_cross_entropy",
           "(Tensor input, Tensor weight, Tensor? bias, Tensor target, int ignore_index=-100, "
           "float label_smoothing=0.0, float scale=1.0, *, str smoothing_form=\"cross_entropy\", "
           "str products=\"own\") -> "
           "(Tensor, Tensor, Tensor)",
           TORCH_FN(linearCrossEntropy), TORCH_FN(linearCrossEntropyReference));
}

}  // namespace torchformer::core
