// Root mean square normalisation over the last dimension (Zhang and Sennrich, 2019).
//
// Purpose: each row is normalised to a root mean square of 1, then gets a learned scale for each
//   feature. Unlike layer normalisation, it does not subtract the mean and has no shift.
// Shapes:  input [..., D], scale [D] -> output [..., D].
// Formula: y = scale * x * r,   r = 1 / sqrt(mean(x^2) + eps).
// Backward, with u = dy * scale and z = x * r:
//   dx = r * (u - z * mean(u * z)),   dscale = sum over rows of dy * z.
// Saved:   input, scale and two numbers per row, of which the mean is 0.
// This is layer norm's kernel with a mean of 0 (device/norm.h); plain ops with libtorch's autograd
//   where the device has none. results: as in layer_norm.cc.
// Hazards: a row of zeros has r = 1 / sqrt(eps): large but finite, so eps must be positive. The
//   backward multiplies by r once and by z, never by r^3, which would overflow for a small eps.
//   A row whose squares overflow is NaN. Half types are computed in float32, with the statistics
//   kept in float32.

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>

#include "core/device/norm.h"
#include "core/ops/ops.h"
#include "core/support/autograd.h"
#include "core/support/check.h"
#include "core/support/precision.h"

namespace torchformer::core {

namespace {

using torch::autograd::AutogradContext;

constexpr auto rmsNormName = "rms_norm";

void checkArguments(const at::Tensor& input, const at::Tensor& scale, double eps) {
  checkFloating(rmsNormName, "input", input);
  checkParameter(rmsNormName, "scale", scale, "input", input);
  TF_CHECK(ERR_SHAPE, input.dim() >= 1 && input.size(-1) >= 1, rmsNormName,
           ": input must be [..., D] with D at least 1, got ", input.sizes());
  TF_CHECK(ERR_SHAPE, scale.dim() == 1 && scale.size(0) == input.size(-1), rmsNormName,
           ": scale must be [", input.size(-1), "] for an input of ", input.sizes(), ", got ",
           scale.sizes());
  checkEpsilon(rmsNormName, "eps", eps, input);
}

NormForm formOf(double eps) {
  return {eps, /*sampleStd=*/false, /*epsOutside=*/false, /*centred=*/false};
}

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& scale, double eps, at::ScalarType outputType) {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    const auto result = normForward(input, scale, /*shift=*/{}, formOf(eps), outputType);
    context->save_for_backward({input, scale, result.mean, result.std});
    context->saved_data["eps"] = eps;
    context->saved_data["output_type"] = static_cast<int64_t>(outputType);
    context->set_materialize_grads(false);
    return result.output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list result(4);
    if (!gradients[0].defined()) return result;
    const auto saved = context->get_saved_variables();
    const auto& input = saved[0];
    const auto& scale = saved[1];
    const double eps = context->saved_data["eps"].toDouble();
    if (c10::GradMode::is_enabled()) {
      const auto outputType =
          static_cast<at::ScalarType>(context->saved_data["output_type"].toInt());
      auto found = differentiableGradients(
          [&](const variable_list& inputs) -> variable_list {
            return {composedNorm(inputs[0], inputs[1], {}, formOf(eps), outputType)};
          },
          {input, scale}, gradients);
      result[0] = found[0];
      result[1] = found[1];
      return result;
    }
    const bool wantsScale = context->needs_input_grad(1);
    const auto found = normBackward(gradients[0], input, scale, saved[2], saved[3], /*gradSum=*/{},
                                    formOf(eps), {context->needs_input_grad(0), wantsScale});
    result[0] = found.input;
    if (wantsScale) result[1] = narrowed(found.scale, scale);
    return result;
  }
};

at::Tensor rmsNorm(const at::Tensor& input, const at::Tensor& scale, double eps,
                   std::string_view results) {
  checkArguments(input, scale, eps);
  const auto outputType = resultType(rmsNormName, results, input);
  if (!hasNormKernels(input))
    return composedNorm(input, scale, /*shift=*/{}, formOf(eps), outputType);
  if (mustRecord({input, scale})) return RmsNormFunction::apply(input, scale, eps, outputType);
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  return normForward(input, scale, /*shift=*/{}, formOf(eps), outputType).output;
}

at::Tensor rmsNormReference(const at::Tensor& input, const at::Tensor& scale, double eps,
                            std::string_view results) {
  checkArguments(input, scale, eps);
  return composedNorm(input, scale, /*shift=*/{}, formOf(eps),
                      resultType(rmsNormName, results, input));
}

}  // namespace

void registerRmsNorm(torch::Library& library) {
  defineOp(library, "rms_norm",
           "(Tensor input, Tensor scale, float eps=1e-6, *, str results=\"own\") -> Tensor",
           TORCH_FN(rmsNorm), TORCH_FN(rmsNormReference));
}

}  // namespace torchformer::core
