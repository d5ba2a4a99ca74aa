// Layer normalisation over the last dimension.
//
// Purpose: each row is normalised to mean 0 and spread 1, then gets a learned scale and shift for
//   each feature.
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
// Saved:   input, scale and two numbers per row.
// Computed by the device's kernel (device/norm.h), or by plain ops with libtorch's autograd if
//   there is none. libtorch's kernel for population and inside is 20% faster on the CPU, but its
//   last bits differ from those of add_norm, and so do its results for rows that overflow.
// results: 'bfloat16' or 'float16' gives the output in that format, for a product that reads it
//   next; input, scale and shift keep their dtypes, and so do their gradients.
// Hazards: a row of equal values has std = 0, and d std / dx is 0 / 0 there: taken as 0, which
//   leaves the finite (u - mean(u)) / spread. A row whose squares overflow is NaN, with NaN as its
//   gradient. Half types are computed in float32, with the statistics kept in float32. Sample
//   statistics are undefined for one feature and rejected.

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

struct LayerNormFunction : torch::autograd::Function<LayerNormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& scale, const at::Tensor& shift,
                            const Dialect& dialect, at::ScalarType outputType) {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    const auto result = normForward(input, scale, shift, dialect.form(), outputType);
    context->save_for_backward({input, scale, shift, result.mean, result.std});
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
    if (c10::GradMode::is_enabled()) {
      auto found = differentiableGradients(
          [&](const variable_list& inputs) -> variable_list {
            return {composedNorm(inputs[0], inputs[1], inputs[2], dialect.form(), outputType)};
          },
          {saved[0], saved[1], saved[2]}, gradients);
      for (size_t i = 0; i < found.size(); ++i) result[i] = std::move(found[i]);
      return result;
    }
    const bool wantsScale = context->needs_input_grad(1);
    const bool wantsShift = context->needs_input_grad(2);
    const auto found =
        normBackward(gradients[0], saved[0], saved[1], saved[3], saved[4], /*gradSum=*/{},
                     dialect.form(), {context->needs_input_grad(0), wantsScale || wantsShift});
    result[0] = found.input;
    if (wantsScale) result[1] = narrowed(found.scale, saved[1]);
    if (wantsShift) result[2] = narrowed(found.shift, saved[2]);
    return result;
  }
};

at::Tensor layerNorm(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                     double eps, bool sampleStd, bool epsOutside, std::string_view results) {
  const Dialect dialect{eps, sampleStd, epsOutside};
  checkArguments(input, scale, shift, dialect);
  const auto outputType = resultType(layerNormName, results, input);
  if (!hasNormKernels(input)) {
    return composedNorm(input, scale, shift, dialect.form(), outputType);
  }
  if (mustRecord({input, scale, shift})) {
    return LayerNormFunction::apply(input, scale, shift, dialect, outputType);
  }
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  return normForward(input, scale, shift, dialect.form(), outputType).output;
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
