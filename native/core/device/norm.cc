#include "core/device/norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/square.h>
#include <ATen/ops/std.h>
#include <ATen/ops/var.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <tuple>

#include "core/device/device_op.h"
#include "core/loops/dropout.h"
#include "core/loops/norm.h"
#include "core/support/optional.h"
#include "core/support/precision.h"
#include "core/support/seed.h"

namespace torchformer::core {

namespace {

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

// The form of a norm in schemas.
#define NORM_FORM "float eps, bool sample_std, bool eps_outside, bool centred"

using ForwardSignature = Three(const at::Tensor&, const at::Tensor&, const OptionalTensor&, double,
                               bool, bool, bool, at::ScalarType);
using BackwardSignature = Three(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                const at::Tensor&, const at::Tensor&, const OptionalTensor&, double,
                                bool, bool, bool, bool, bool);
using SumForwardSignature = Four(const at::Tensor&, double, int64_t, const OptionalTensor&,
                                 const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                                 double, bool, bool, bool, at::ScalarType);
using SumBackwardSignature = Four(const at::Tensor&, const OptionalTensor&, const at::Tensor&,
                                  double, int64_t, const OptionalTensor&, at::ScalarType,
                                  const at::Tensor&, const at::Tensor&, const at::Tensor&, double,
                                  bool, bool, bool, bool);

const DeviceOp<ForwardSignature>& forwardOp() {
  static const DeviceOp<ForwardSignature> op("norm_forward");
  return op;
}

const DeviceOp<BackwardSignature>& backwardOp() {
  static const DeviceOp<BackwardSignature> op("norm_backward");
  return op;
}

const DeviceOp<SumForwardSignature>& sumForwardOp() {
  static const DeviceOp<SumForwardSignature> op("dropped_sum_norm_forward");
  return op;
}

const DeviceOp<SumBackwardSignature>& sumBackwardOp() {
  static const DeviceOp<SumBackwardSignature> op("dropped_sum_norm_backward");
  return op;
}

// ---- CPU --------------------------------------------------------------------------------------

Three forwardCpu(const at::Tensor& input, const at::Tensor& scale, const OptionalTensor& shift,
                 double eps, bool sampleStd, bool epsOutside, bool centred,
                 at::ScalarType outputType) {
  const auto result =
      normRows(widened(input), widened(scale), shift.has_value() ? widened(*shift) : at::Tensor(),
               {eps, sampleStd, epsOutside, centred});
  return {result.output.to(outputType), result.mean, result.std};
}

Three backwardCpu(const at::Tensor& gradOutput, const at::Tensor& input, const at::Tensor& scale,
                  const at::Tensor& mean, const at::Tensor& std, const OptionalTensor& gradSum,
                  double eps, bool sampleStd, bool epsOutside, bool centred, bool wantsInput,
                  bool) {
  // The loops compute the gradients of scale and shift at no extra cost.
  const auto added = gradSum.has_value() ? widened(*gradSum) : at::Tensor();
  const auto found =
      normRowsBackward(widened(gradOutput).to(mean.scalar_type()), widened(input), widened(scale),
                       mean, std, added, {eps, sampleStd, epsOutside, centred}, wantsInput);
  return {narrowed(found.input, input), found.scale, found.shift};
}

Four sumForwardCpu(const at::Tensor& input, double p, int64_t seed, const OptionalTensor& slot,
                   const at::Tensor& residual, const at::Tensor& scale, const OptionalTensor& shift,
                   double eps, bool sampleStd, bool epsOutside, bool centred,
                   at::ScalarType outputType) {
  const RowsDropout dropout{p, p > 0.0 ? seedOf(seed, slot) : 0};
  // The norm is that of the sum as it is stored: rounded in the residual's type.
  if (isHalf(residual)) {
    const auto sum = p > 0.0 ? dropRows(widened(input), p, dropout.seed, widened(residual))
                                   .to(residual.scalar_type())
                             : residual.add(input);
    const auto [output, mean, std] =
        forwardCpu(sum, scale, shift, eps, sampleStd, epsOutside, centred, outputType);
    return {sum, output, mean, std};
  }
  const auto found = sumNormRows(widened(input).to(residual.scalar_type()), dropout, residual,
                                 scale, orNone(shift), {eps, sampleStd, epsOutside, centred});
  return {found.sum, found.norm.output.to(outputType), found.norm.mean, found.norm.std};
}

Four sumBackwardCpu(const at::Tensor& gradOutput, const OptionalTensor& gradSum,
                    const at::Tensor& sum, double p, int64_t seed, const OptionalTensor& slot,
                    at::ScalarType inputType, const at::Tensor& scale, const at::Tensor& mean,
                    const at::Tensor& std, double eps, bool sampleStd, bool epsOutside,
                    bool centred, bool wantsParameters) {
  const RowsDropout dropout{p, p > 0.0 ? seedOf(seed, slot) : 0};
  // The dropout is that of the gradient as it is returned.
  if (isHalf(sum)) {
    const auto [gradient, gradScale, gradShift] =
        backwardCpu(gradOutput, sum, scale, mean, std, gradSum, eps, sampleStd, epsOutside, centred,
                    /*wantsInput=*/true, wantsParameters);
    const auto dropped = p > 0.0 ? dropRows(widened(gradient), p, dropout.seed) : gradient;
    return {dropped.to(inputType), gradient, gradScale, gradShift};
  }
  const auto found =
      sumNormRowsBackward(widened(gradOutput).to(sum.scalar_type()), orNone(gradSum), sum, dropout,
                          scale, mean, std, {eps, sampleStd, epsOutside, centred});
  return {found.dropped.to(inputType), found.norm.input, found.norm.scale, found.norm.shift};
}

// ---- shapes -----------------------------------------------------------------------------------

at::Tensor statisticsOf(const at::Tensor& input) {
  const auto rows = input.numel() / std::max<int64_t>(1, input.size(-1));
  return at::empty({rows}, input.options().dtype(statisticsType(input)));
}

at::Tensor like(const at::Tensor& tensor, at::ScalarType dtype) {
  return at::empty(tensor.sizes(), tensor.options().dtype(dtype));
}

Three forwardMeta(const at::Tensor& input, const at::Tensor&, const OptionalTensor&, double, bool,
                  bool, bool, at::ScalarType outputType) {
  return {like(input, outputType), statisticsOf(input), statisticsOf(input)};
}

Three backwardMeta(const at::Tensor&, const at::Tensor& input, const at::Tensor& scale,
                   const at::Tensor& mean, const at::Tensor&, const OptionalTensor&, double, bool,
                   bool, bool, bool wantsInput, bool wantsParameters) {
  const auto parameter = [&] {
    return wantsParameters ? like(scale, mean.scalar_type()) : at::Tensor();
  };
  return {wantsInput ? like(input, input.scalar_type()) : at::Tensor(), parameter(), parameter()};
}

Four sumForwardMeta(const at::Tensor&, double, int64_t, const OptionalTensor&,
                    const at::Tensor& residual, const at::Tensor&, const OptionalTensor&, double,
                    bool, bool, bool, at::ScalarType outputType) {
  return {like(residual, residual.scalar_type()), like(residual, outputType),
          statisticsOf(residual), statisticsOf(residual)};
}

Four sumBackwardMeta(const at::Tensor&, const OptionalTensor&, const at::Tensor& sum, double,
                     int64_t, const OptionalTensor&, at::ScalarType inputType,
                     const at::Tensor& scale, const at::Tensor& mean, const at::Tensor&, double,
                     bool, bool, bool, bool wantsParameters) {
  const auto parameter = [&] {
    return wantsParameters ? like(scale, mean.scalar_type()) : at::Tensor();
  };
  return {like(sum, inputType), like(sum, sum.scalar_type()), parameter(), parameter()};
}

}  // namespace

bool hasNormKernels(const at::Tensor& tensor) { return forwardOp().isFor(tensor); }

NormResult normForward(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                       const NormForm& form, at::ScalarType outputType) {
  auto [output, mean, std] = forwardOp()(input, scale, optional(shift), form.eps, form.sampleStd,
                                         form.epsOutside, form.centred, outputType);
  return {output, mean, std};
}

NormGradients normBackward(const at::Tensor& gradOutput, const at::Tensor& input,
                           const at::Tensor& scale, const at::Tensor& mean, const at::Tensor& std,
                           const at::Tensor& gradSum, const NormForm& form,
                           const NormWanted& wanted) {
  auto [gradInput, gradScale, gradShift] =
      backwardOp()(gradOutput, input, scale, mean, std, optional(gradSum), form.eps, form.sampleStd,
                   form.epsOutside, form.centred, wanted.input, wanted.parameters);
  return {gradInput, gradScale, gradShift};
}

DroppedSumNorm droppedSumNormForward(const at::Tensor& input, double p, const Seed& seed,
                                     const at::Tensor& residual, const at::Tensor& scale,
                                     const at::Tensor& shift, const NormForm& form,
                                     at::ScalarType outputType) {
  auto [sum, output, mean, std] =
      sumForwardOp()(input, p, seed.number, seed.optionalSlot(), residual, scale, optional(shift),
                     form.eps, form.sampleStd, form.epsOutside, form.centred, outputType);
  return {sum, {output, mean, std}};
}

DroppedSumNormGradients droppedSumNormBackward(const at::Tensor& gradOutput,
                                               const at::Tensor& gradSum, const at::Tensor& sum,
                                               double p, const Seed& seed, at::ScalarType inputType,
                                               const at::Tensor& scale, const at::Tensor& mean,
                                               const at::Tensor& std, const NormForm& form,
                                               bool wantsParameters) {
  auto [dropped, gradient, gradScale, gradShift] = sumBackwardOp()(
      gradOutput, optional(gradSum), sum, p, seed.number, seed.optionalSlot(), inputType, scale,
      mean, std, form.eps, form.sampleStd, form.epsOutside, form.centred, wantsParameters);
  return {dropped, {gradient, gradScale, gradShift}};
}

namespace {

/// `spread` [..., 1] with NaN where the squares of the deviations overflow. at::var accumulates in
/// a wider type on the CPU and would hide that.
at::Tensor checkedSpread(const at::Tensor& spread, const at::Tensor& deviations) {
  const auto squares = at::square(deviations.detach()).sum({-1}, /*keepdim=*/true);
  return spread.masked_fill(at::isfinite(squares).logical_not(),
                            std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

at::Tensor composedNorm(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                        const NormForm& form, at::ScalarType outputType) {
  const auto x = widened(input);
  if (!form.centred) {
    const auto reciprocal = ((x * x).mean({-1}, /*keepdim=*/true) + form.eps).rsqrt();
    return (x * checkedSpread(reciprocal, x) * widened(scale)).to(outputType);
  }
  const auto shifted = [&](const at::Tensor& scaled) {
    return (shift.defined() ? scaled + widened(shift) : scaled).to(outputType);
  };
  // Without rows there is no spread, and at::var would print a warning.
  if (input.numel() == 0) return shifted(x * widened(scale));
  const int64_t correction = form.sampleStd ? 1 : 0;
  const auto mean = x.mean({-1}, /*keepdim=*/true);
  // at::std defines its gradient as 0 where the standard deviation is 0, unlike a square root of
  // the variance.
  const auto spread =
      form.epsOutside ? at::std(x, /*dim=*/{-1}, correction, /*keepdim=*/true) + form.eps
                      : (at::var(x, /*dim=*/{-1}, correction, /*keepdim=*/true) + form.eps).sqrt();
  return shifted(widened(scale) * (x - mean) / checkedSpread(spread, x - mean));
}

void defineNormDeviceOps(torch::Library& library) {
  defineDeviceOp(library,
                 "norm_forward(Tensor input, Tensor scale, Tensor? shift, " NORM_FORM
                 ", ScalarType output_type) -> (Tensor output, Tensor mean, Tensor std)",
                 TORCH_FN(forwardCpu), TORCH_FN(forwardMeta));
  defineDeviceOp(library,
                 "norm_backward(Tensor grad_output, Tensor input, Tensor scale, Tensor mean, "
                 "Tensor std, Tensor? grad_sum, " NORM_FORM
                 ", bool wants_input, bool wants_parameters) -> (Tensor, Tensor, Tensor)",
                 TORCH_FN(backwardCpu), TORCH_FN(backwardMeta));
  defineDeviceOp(library,
                 "dropped_sum_norm_forward(Tensor input, float p, int seed, Tensor? slot, "
                 "Tensor residual, Tensor scale, Tensor? shift, " NORM_FORM
                 ", ScalarType output_type) -> (Tensor sum, Tensor output, Tensor mean, Tensor "
                 "std)",
                 TORCH_FN(sumForwardCpu), TORCH_FN(sumForwardMeta));
  defineDeviceOp(library,
                 "dropped_sum_norm_backward(Tensor grad_output, Tensor? grad_sum, Tensor sum, "
                 "float p, int seed, Tensor? slot, ScalarType input_type, Tensor scale, Tensor "
                 "mean, Tensor std, " NORM_FORM
                 ", bool wants_parameters) -> (Tensor dropped, Tensor, Tensor, Tensor)",
                 TORCH_FN(sumBackwardCpu), TORCH_FN(sumBackwardMeta));
}

}  // namespace torchformer::core
