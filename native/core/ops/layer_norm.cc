// Layer normalisation over the last dimension.
//
// Purpose: every row gets mean 0 and spread 1, then a learned scale and shift for each feature.
// Shapes:  input [..., D], scale [D], shift [D] -> output [..., D].
// Formula: y = scale * (x - mean) / spread + shift, where four dialects differ in `spread`:
//                          eps inside the root            eps_outside
//   population (n)         sqrt(variance + eps)           std + eps
//   sample_std (n - 1)     sqrt(variance + eps)           std + eps
//   Population and inside is the paper's usual reading and PyTorch's; sample and outside is The
//   Annotated Transformer's.
// Backward, with u = dy * scale, z = (x - mean) / spread, m = n or n - 1:
//   dx = (u - mean(u)) / spread - z * sum(u * z) / (m * r),  r = spread (inside) or std (outside)
//   dscale = sum over rows of dy * z,   dshift = sum over rows of dy.
// Saved:   input, scale and two numbers a row.
// Population and inside takes libtorch's fused kernel on the CPU, where it is a fifth faster than
//   ours; the others, and GPUs, take the device's kernel (device/norm.h). Where there is none,
//   libtorch's kernel or plain ops with libtorch's autograd.
// results: 'bfloat16' or 'float16' gives the output in that format, for a product that reads it
//   next; input, scale and shift stay what they are, and so do their gradients.
// Hazards: a row of equal values has std = 0, and d std / dx is 0 / 0 there: taken as 0, which
//   leaves the finite (u - mean(u)) / spread. A row whose squares overflow is NaN, with NaN as its
//   gradient: libtorch's kernel makes it NaN or zeros, by its width. Half types are computed in
//   float32, statistics kept in float32 too. Sample statistics do not exist for one feature:
//   refused.

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>
#include <string>

#include "core/device/norm.h"
#include "core/ops/ops.h"
#include "core/support/autograd.h"
#include "core/support/check.h"
#include "core/support/precision.h"

namespace torchformer::core {

namespace {

using torch::autograd::AutogradContext;

constexpr auto layerNormName = "layer_norm";

struct Dialect {
  double eps;
  bool sampleStd;
  bool epsOutside;

  NormForm form() const { return {eps, sampleStd, epsOutside, /*centred=*/true}; }
};

void checkArguments(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                    const Dialect& dialect) {
  checkFloating(layerNormName, "input", input);
  checkParameter(layerNormName, "scale", scale, "input", input);
  checkMatches(layerNormName, "shift", shift, "scale", scale);
  TF_CHECK(ERR_SHAPE, input.dim() >= 1 && input.size(-1) >= 1, layerNormName,
           ": input must be [..., D] with D at least 1, got ", input.sizes());
  const auto features = input.size(-1);
  TF_CHECK(ERR_SHAPE, scale.dim() == 1 && scale.size(0) == features, layerNormName,
           ": scale must be [", features, "] for an input of ", input.sizes(), ", got ",
           scale.sizes());
  TF_CHECK(ERR_SHAPE, shift.dim() == 1 && shift.size(0) == features, layerNormName,
           ": shift must be [", features, "] for an input of ", input.sizes(), ", got ",
           shift.sizes());
  TF_CHECK(ERR_SHAPE, !dialect.sampleStd || features >= 2, layerNormName,
           ": the sample standard deviation needs at least 2 features, got an input of ",
           input.sizes());
  checkEpsilon(layerNormName, "eps", dialect.eps, input);
}

/// What libtorch's fused kernel should get as scale or shift. On the CPU it keeps the statistics in
/// the dtype of these, so half parameters would round mean and 1 / spread to 8 or 11 bits.
at::Tensor fusedParameter(const at::Tensor& parameter) {
  return parameter.is_cpu() ? widened(parameter) : parameter;
}

/// Whether libtorch's fused kernel computes this. It leaves rounding noise in the gradient of the
/// scale of a single feature, which is exactly zero.
bool isFused(const at::Tensor& input, const at::Tensor& scale, const Dialect& dialect,
             at::ScalarType outputType) {
  return !dialect.sampleStd && !dialect.epsOutside && input.size(-1) > 1 &&
         outputType == input.scalar_type() && scale.scalar_type() == input.scalar_type() &&
         (input.is_cpu() || !hasNormKernels(input));
}

struct LayerNormResult {
  at::Tensor output;
  at::Tensor mean;    // [..., 1] from libtorch's kernel, [rows] from ours
  at::Tensor spread;  // as mean: 1 / spread from libtorch's kernel, the deviation from ours
};

template <typename T>
bool allPositive(const at::Tensor& tensor) {
  const auto* data = tensor.const_data_ptr<T>();
  return std::all_of(data, data + tensor.numel(), [](T value) { return value > 0; });
}

/// What libtorch's kernel has found, with the rows whose squares overflow NaN. It has 0 or NaN for
/// 1 / spread there, and sometimes where they are only near it, and zeros or NaN in the output.
LayerNormResult withOverflow(const LayerNormResult& found, const at::Tensor& input,
                             const at::Tensor& scale, const at::Tensor& shift,
                             const Dialect& dialect, at::ScalarType outputType) {
  const auto& reciprocal = found.spread;
  if (!reciprocal.is_cpu()) {
    // A GPU would have to be waited for.
    constexpr auto nan = std::numeric_limits<double>::quiet_NaN();
    const auto overflowed = reciprocal.eq(0);
    return {found.output.masked_fill(overflowed, nan), found.mean,
            reciprocal.masked_fill(overflowed, nan)};
  }
  if (reciprocal.scalar_type() == at::kDouble ? allPositive<double>(reciprocal)
                                              : allPositive<float>(reciprocal)) {
    return found;
  }
  const auto again = normForward(input, scale, shift, dialect.form(), outputType);
  return {again.output, again.mean.view(found.mean.sizes()),
          again.std.square().add_(dialect.eps).rsqrt_().view(reciprocal.sizes())};
}

/// Whether forwardPass and backwardPass can be used.
bool hasKernel(const at::Tensor& input, const at::Tensor& scale, const Dialect& dialect,
               at::ScalarType outputType) {
  return isFused(input, scale, dialect, outputType) || hasNormKernels(input);
}

LayerNormResult forwardPass(const at::Tensor& input, const at::Tensor& scale,
                            const at::Tensor& shift, const Dialect& dialect,
                            at::ScalarType outputType) {
  if (isFused(input, scale, dialect, outputType)) {
    auto [output, mean, reciprocal] = at::native_layer_norm(
        input, {input.size(-1)}, fusedParameter(scale), fusedParameter(shift), dialect.eps);
    return withOverflow({output, mean, reciprocal}, input, scale, shift, dialect, outputType);
  }
  const auto found = normForward(input, scale, shift, dialect.form(), outputType);
  return {found.output, found.mean, found.std};
}

struct LayerNormWanted {
  bool input;
  bool scale;
  bool shift;
};

variable_list backwardPass(const at::Tensor& gradOutput, const at::Tensor& input,
                           const at::Tensor& scale, const at::Tensor& shift, const at::Tensor& mean,
                           const at::Tensor& spread, const Dialect& dialect,
                           const LayerNormWanted& wanted, at::ScalarType outputType) {
  if (isFused(input, scale, dialect, outputType)) {
    auto [gradInput, gradScale, gradShift] = at::native_layer_norm_backward(
        gradOutput, input, {input.size(-1)}, mean, spread, fusedParameter(scale),
        fusedParameter(shift), {wanted.input, wanted.scale, wanted.shift});
    return {gradInput, narrowed(gradScale, scale), narrowed(gradShift, shift)};
  }
  const auto found = normBackward(gradOutput, input, scale, mean, spread, /*gradSum=*/{},
                                  dialect.form(), {wanted.input, wanted.scale || wanted.shift});
  return {found.input, wanted.scale ? narrowed(found.scale, scale) : at::Tensor(),
          wanted.shift ? narrowed(found.shift, shift) : at::Tensor()};
}

struct LayerNormFunction : torch::autograd::Function<LayerNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& scale, const at::Tensor& shift,
                            const Dialect& dialect, at::ScalarType outputType) {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    const auto result = forwardPass(input, scale, shift, dialect, outputType);
    context->save_for_backward({input, scale, shift, result.mean, result.spread});
    context->saved_data["eps"] = dialect.eps;
    context->saved_data["sample_std"] = dialect.sampleStd;
    context->saved_data["eps_outside"] = dialect.epsOutside;
    context->saved_data["output_type"] = static_cast<int64_t>(outputType);
    context->set_materialize_grads(false);
    return result.output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list result(5);
    if (!gradients[0].defined()) return result;
    const auto saved = context->get_saved_variables();
    const Dialect dialect{context->saved_data["eps"].toDouble(),
                          context->saved_data["sample_std"].toBool(),
                          context->saved_data["eps_outside"].toBool()};
    const auto outputType = static_cast<at::ScalarType>(context->saved_data["output_type"].toInt());
    auto found =
        c10::GradMode::is_enabled()
            ? differentiableGradients(
                  [&](const variable_list& inputs) -> variable_list {
                    return {
                        composedNorm(inputs[0], inputs[1], inputs[2], dialect.form(), outputType)};
                  },
                  {saved[0], saved[1], saved[2]}, gradients)
            : backwardPass(gradients[0], saved[0], saved[1], saved[2], saved[3], saved[4], dialect,
                           {context->needs_input_grad(0), context->needs_input_grad(1),
                            context->needs_input_grad(2)},
                           outputType);
    for (size_t i = 0; i < found.size(); ++i) result[i] = std::move(found[i]);
    return result;
  }
};

at::Tensor layerNorm(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                     double eps, bool sampleStd, bool epsOutside, std::string_view results) {
  const Dialect dialect{eps, sampleStd, epsOutside};
  checkArguments(input, scale, shift, dialect);
  const auto outputType = resultType(layerNormName, results, input);
  if (!hasKernel(input, scale, dialect, outputType)) {
    return composedNorm(input, scale, shift, dialect.form(), outputType);
  }
  if (mustRecord({input, scale, shift})) {
    return LayerNormFunction::apply(input, scale, shift, dialect, outputType);
  }
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  return forwardPass(input, scale, shift, dialect, outputType).output;
}

at::Tensor layerNormReference(const at::Tensor& input, const at::Tensor& scale,
                              const at::Tensor& shift, double eps, bool sampleStd, bool epsOutside,
                              std::string_view results) {
  const Dialect dialect{eps, sampleStd, epsOutside};
  checkArguments(input, scale, shift, dialect);
  return composedNorm(input, scale, shift, dialect.form(),
                      resultType(layerNormName, results, input));
}

}  // namespace

void registerLayerNorm(torch::Library& library) {
  defineOp(library, "layer_norm",
           "(Tensor input, Tensor scale, Tensor shift, float eps=1e-6, *, bool sample_std=False, "
           "bool eps_outside=False, str results=\"own\") -> Tensor",
           TORCH_FN(layerNorm), TORCH_FN(layerNormReference));
}

}  // namespace torchformer::core
