// "Add & Norm" (paper, figure 1): the residual sum of a sublayer and the norm of it, in one.
//
// Purpose: in a Transformer every residual sum is followed by a norm, immediately ("post") or at
//   the start of the next sublayer ("pre"). Fused, they read and write each row once, forward and
//   backward, instead of twice.
// Shapes:  input, residual [..., D], scale [D], shift [D] or none -> sum, output [..., D].
// Formula: sum = residual + drop(input);  output = norm(sum) as in layer_norm.cc, or without
//   `centred` as in rms_norm.cc.
// Backward, from dsum and doutput: dresidual = dsum + norm's gradient of the sum,
//   dinput = dresidual * keep / (1 - p); dscale and dshift as in the norm.
// Saved:   sum, scale, shift, two numbers a row, and the seed of the mask; not what was summed. A
//   second derivative finds the way back to it through the sum, which is an output.
// Hazards: the sum has the dtype of the residual, which may be float32 beside an input of a half
//   type; `results` applies only to the output.

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>
#include <tuple>

#include "core/device/dropout.h"
#include "core/device/norm.h"
#include "core/ops/ops.h"
#include "core/support/autograd.h"
#include "core/support/check.h"
#include "core/support/optional.h"
#include "core/support/precision.h"

namespace torchformer::core {

namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;
using torch::autograd::AutogradContext;

constexpr auto addNormName = "add_norm";

struct AddNormTensors {
  at::Tensor input, residual, scale, shift;
};

void checkArguments(const AddNormTensors& t, double p, const NormForm& form,
                    const OptionalGenerator& generator) {
  checkFloating(addNormName, "input", t.input);
  checkParameter(addNormName, "residual", t.residual, "input", t.input);
  TF_CHECK(ERR_SHAPE, t.residual.sizes() == t.input.sizes(), addNormName,
           ": residual must have the shape of input, ", t.input.sizes(), ", got ",
           t.residual.sizes());
  TF_CHECK(ERR_SHAPE, t.input.dim() >= 1 && t.input.size(-1) >= 1, addNormName,
           ": input must be [..., D] with D at least 1, got ", t.input.sizes());
  const auto features = t.input.size(-1);
  checkParameter(addNormName, "scale", t.scale, "residual", t.residual);
  TF_CHECK(ERR_SHAPE, t.scale.dim() == 1 && t.scale.size(0) == features, addNormName,
           ": scale must be [", features, "] for an input of ", t.input.sizes(), ", got ",
           t.scale.sizes());
  if (t.shift.defined()) {
    checkMatches(addNormName, "shift", t.shift, "scale", t.scale);
    TF_CHECK(ERR_SHAPE, t.shift.dim() == 1 && t.shift.size(0) == features, addNormName,
             ": shift must be [", features, "] for an input of ", t.input.sizes(), ", got ",
             t.shift.sizes());
  }
  TF_CHECK(ERR_ARGUMENT, form.centred || !t.shift.defined(), addNormName,
           ": without centred there is no shift; leave it out");
  TF_CHECK(ERR_ARGUMENT, form.centred || (!form.sampleStd && !form.epsOutside), addNormName,
           ": sample_std and eps_outside belong to a centred norm; leave them out");
  TF_CHECK(ERR_SHAPE, !form.sampleStd || features >= 2, addNormName,
           ": the sample standard deviation needs at least 2 features, got an input of ",
           t.input.sizes());
  checkEpsilon(addNormName, "eps", form.eps, t.input);
  checkProbability(addNormName, "dropout_p", p);
  checkGenerator(addNormName, generator);
}

/// Both outputs in plain ops.
variable_list composed(const AddNormTensors& t, double p, const Seed& seed, const NormForm& form,
                       at::ScalarType outputType) {
  auto dropped = t.input.to(t.residual.scalar_type());
  if (p > 0.0) dropped = applyKept(dropped, keptMask(t.input, p, seed), p);
  const auto sum = t.residual.add(dropped);
  return {sum, composedNorm(sum, t.scale, t.shift, form, outputType)};
}

struct AddNormFunction : torch::autograd::Function<AddNormFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& input,
                               const at::Tensor& residual, const at::Tensor& scale,
                               const OptionalTensor& optionalShift, double p, const NormForm& form,
                               at::ScalarType outputType, const OptionalGenerator& generator) {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    const auto shift = orNone(optionalShift);
    const auto seed = drawSeed(p, generator, input);
    const auto found =
        droppedSumNormForward(input, p, seed, residual, scale, shift, form, outputType);
    context->save_for_backward({found.sum, scale, shift, found.norm.mean, found.norm.std});
    context->saved_data["input_type"] = static_cast<int64_t>(input.scalar_type());
    context->saved_data["p"] = p;
    saveSeed(context, seed);
    context->saved_data["eps"] = form.eps;
    context->saved_data["sample_std"] = form.sampleStd;
    context->saved_data["eps_outside"] = form.epsOutside;
    context->saved_data["centred"] = form.centred;
    context->saved_data["output_type"] = static_cast<int64_t>(outputType);
    context->set_materialize_grads(false);
    return {found.sum, found.norm.output};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list result(8);
    const auto& gradSum = gradients[0];
    const auto& gradOutput = gradients[1];
    if (!gradSum.defined() && !gradOutput.defined()) return result;
    const auto saved = context->get_saved_variables();
    const auto& [sum, scale, shift] = std::tie(saved[0], saved[1], saved[2]);
    const auto inputType = static_cast<at::ScalarType>(context->saved_data["input_type"].toInt());
    const auto p = context->saved_data["p"].toDouble();
    const auto seed = savedSeed(context);
    const NormForm form{
        context->saved_data["eps"].toDouble(), context->saved_data["sample_std"].toBool(),
        context->saved_data["eps_outside"].toBool(), context->saved_data["centred"].toBool()};
    const auto outputType = static_cast<at::ScalarType>(context->saved_data["output_type"].toInt());
    const bool isRecorded = c10::GradMode::is_enabled();
    // The gradient of the sum through the dropout. applyKept is differentiable.
    const auto dropped = [&](const at::Tensor& gradient) {
      if (p == 0.0) return gradient.to(inputType);
      return isRecorded ? applyKept(gradient, keptMask(gradient, p, seed), p).to(inputType)
                        : drop(gradient, p, seed, {}, inputType);
    };
    if (!gradOutput.defined()) {
      result[0] = dropped(gradSum);
      result[1] = gradSum;
      return result;
    }
    if (isRecorded) {
      const auto found = differentiableGradients(
          [&](const variable_list& inputs) -> variable_list {
            return {composedNorm(inputs[0], inputs[1], inputs[2], form, outputType)};
          },
          {sum, scale, shift}, {gradOutput});
      result[1] = gradSum.defined() ? found[0].add(gradSum) : found[0];
      result[0] = dropped(result[1]);
      result[2] = found[1];
      result[3] = found[2];
      return result;
    }
    auto found = droppedSumNormBackward(gradOutput, gradSum, sum, p, seed, inputType, scale,
                                        saved[3], saved[4], form, context->needs_input_grad(2));
    result[0] = found.dropped;
    result[1] = found.norm.input;
    result[2] = narrowed(found.norm.scale, scale);
    if (shift.defined()) result[3] = narrowed(found.norm.shift, shift);
    return result;
  }
};

Pair addNorm(const at::Tensor& input, const at::Tensor& residual, const at::Tensor& scale,
             const OptionalTensor& shift, double p, double eps, bool sampleStd, bool epsOutside,
             bool centred, std::string_view results, OptionalGenerator generator) {
  const AddNormTensors t{input, residual, scale, orNone(shift)};
  const NormForm form{eps, sampleStd, epsOutside, centred};
  checkArguments(t, p, form, generator);
  const auto outputType = resultType(addNormName, results, residual);
  if (!hasNormKernels(input)) {
    const auto found = composed(t, p, drawSeed(p, generator, input), form, outputType);
    return {found[0], found[1]};
  }
  if (mustRecord({t.input, t.residual, t.scale, t.shift})) {
    const auto found =
        AddNormFunction::apply(input, residual, scale, shift, p, form, outputType, generator);
    return {found[0], found[1]};
  }
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  const auto found = droppedSumNormForward(input, p, drawSeed(p, generator, input), residual, scale,
                                           t.shift, form, outputType);
  return {found.sum, found.norm.output};
}

Pair addNormReference(const at::Tensor& input, const at::Tensor& residual, const at::Tensor& scale,
                      const OptionalTensor& shift, double p, double eps, bool sampleStd,
                      bool epsOutside, bool centred, std::string_view results,
                      OptionalGenerator generator) {
  const AddNormTensors t{input, residual, scale, orNone(shift)};
  const NormForm form{eps, sampleStd, epsOutside, centred};
  checkArguments(t, p, form, generator);
  const auto found = composed(t, p, drawSeed(p, generator, input), form,
                              resultType(addNormName, results, residual));
  return {found[0], found[1]};
}

}  // namespace

void registerAddNorm(torch::Library& library) {
  defineOp(library, "add_norm",
           "(Tensor input, Tensor residual, Tensor scale, Tensor? shift=None, float dropout_p=0.0, "
           "float eps=1e-6, *, bool sample_std=False, bool eps_outside=False, bool centred=True, "
           "str results=\"own\", Generator? generator=None) -> (Tensor sum, Tensor output)",
           TORCH_FN(addNorm), TORCH_FN(addNormReference));
}

}  // namespace torchformer::core
