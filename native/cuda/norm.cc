// The device ops of core/device/norm.cc on CUDA.

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include <tuple>

#include "norm_kernel.h"
#include "tensors.h"

namespace torchformer::cuda {

namespace {

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

using core::statisticsType;

constexpr auto normName = "norm";

/// Scale or shift as the kernels require it: widened here, because it is short, and dense.
at::Tensor parameter(const OptionalTensor& tensor, at::ScalarType type) {
  return tensor.has_value() ? dense(tensor->to(type)) : at::Tensor();
}

at::Tensor like(const at::Tensor& tensor, at::ScalarType type) {
  return at::empty(tensor.sizes(), tensor.options().dtype(type));
}

/// The additional tensors of a norm with a sum.
struct SumParts {
  at::Tensor input, residual, sum;
  Dropping dropping;
};

/// `rows`: the tensor to normalise, or one of its shape and dtype.
Three forward(const at::Tensor& rows, const SumParts* parts, const at::Tensor& scale,
              const OptionalTensor& shift, const NormForm& form, at::ScalarType outputType) {
  const auto type = statisticsType(rows);
  const auto [count, columns] = rowSizes(rows);
  const auto scales = parameter(scale, type);
  const auto shifts = parameter(shift, type);
  const auto output = like(rows, outputType);
  const auto mean = at::empty({count}, rows.options().dtype(type));
  const auto std = at::empty({count}, rows.options().dtype(type));
  const auto& input = parts == nullptr ? rows : parts->input;
  NormForwardArguments arguments{elementOf(input.scalar_type()),
                                 elementOf(outputType),
                                 dataOf(input),
                                 dataOf(scales),
                                 dataOf(shifts),
                                 mutableDataOf(output),
                                 mutableDataOf(mean),
                                 mutableDataOf(std),
                                 count,
                                 columns,
                                 form};
  if (parts != nullptr) {
    arguments.residual = dataOf(parts->residual);
    arguments.sum = mutableDataOf(parts->sum);
    arguments.sumType = elementOf(parts->sum.scalar_type());
    arguments.dropping = parts->dropping;
  }
  check(normName, launchNormForward(arguments, currentStream(rows.device())));
  return {output, mean, std};
}

/// Gradients of the normalised tensor (undefined unless requested), of scale and of shift.
/// `dropped` gets the first one's gradient through a dropout, and is undefined if there is none.
Three backward(const at::Tensor& gradOutput, const at::Tensor& input, const at::Tensor& scale,
               const at::Tensor& mean, const at::Tensor& std, const OptionalTensor& gradSum,
               const NormForm& form, bool wantsInput, bool wantsParameters,
               const at::Tensor& dropped = {}, const Dropping& dropping = {}) {
  const auto type = statisticsType(input);
  const auto [count, columns] = rowSizes(input);
  const auto rows = dense(input);
  const auto upstream = dense(gradOutput);
  const auto added = gradSum.has_value() ? dense(*gradSum) : at::Tensor();
  const auto scales = parameter(scale, type);
  const auto options = input.options().dtype(type);
  const auto gradInput = wantsInput ? like(input, input.scalar_type()) : at::Tensor();
  at::Tensor partials;
  at::Tensor gradScale;
  at::Tensor gradShift;
  if (wantsParameters) {
    // Without rows, no kernel is launched.
    gradScale = count == 0 ? at::zeros({columns}, options) : at::empty({columns}, options);
    gradShift = count == 0 ? at::zeros({columns}, options) : at::empty({columns}, options);
    partials = at::empty({2, normPartialRows(count, columns), columns}, options);
  }
  NormBackwardArguments arguments{elementOf(rows.scalar_type()),
                                  elementOf(upstream.scalar_type()),
                                  dataOf(upstream),
                                  dataOf(rows),
                                  dataOf(scales),
                                  dataOf(mean),
                                  dataOf(std),
                                  dataOf(added),
                                  mutableDataOf(gradInput),
                                  wantsParameters ? mutableDataOf(partials.select(0, 0)) : nullptr,
                                  wantsParameters ? mutableDataOf(partials.select(0, 1)) : nullptr,
                                  mutableDataOf(gradScale),
                                  mutableDataOf(gradShift),
                                  count,
                                  columns,
                                  form};
  if (dropped.defined()) {
    arguments.gradDropped = mutableDataOf(dropped);
    arguments.droppedType = elementOf(dropped.scalar_type());
    arguments.dropping = dropping;
  }
  check(normName, launchNormBackward(arguments, currentStream(input.device())));
  return {gradInput, gradScale, gradShift};
}

Three normForward(const at::Tensor& input, const at::Tensor& scale, const OptionalTensor& shift,
                  double eps, bool sampleStd, bool epsOutside, bool centred,
                  at::ScalarType outputType) {
  const c10::DeviceGuard guard(input.device());
  return forward(dense(input), nullptr, scale, shift, {eps, sampleStd, epsOutside, centred},
                 outputType);
}

Three normBackward(const at::Tensor& gradOutput, const at::Tensor& input, const at::Tensor& scale,
                   const at::Tensor& mean, const at::Tensor& std, const OptionalTensor& gradSum,
                   double eps, bool sampleStd, bool epsOutside, bool centred, bool wantsInput,
                   bool wantsParameters) {
  const c10::DeviceGuard guard(input.device());
  return backward(gradOutput, input, scale, mean, std, gradSum,
                  {eps, sampleStd, epsOutside, centred}, wantsInput, wantsParameters);
}

Four sumForward(const at::Tensor& input, double p, int64_t seed, const OptionalTensor& slot,
                const at::Tensor& residual, const at::Tensor& scale, const OptionalTensor& shift,
                double eps, bool sampleStd, bool epsOutside, bool centred,
                at::ScalarType outputType) {
  const c10::DeviceGuard guard(input.device());
  const SumParts parts{dense(input), dense(residual), like(residual, residual.scalar_type()),
                       droppingOf(p, seed, slot)};
  const auto [output, mean, std] =
      forward(parts.sum, &parts, scale, shift, {eps, sampleStd, epsOutside, centred}, outputType);
  return {parts.sum, output, mean, std};
}

Four sumBackward(const at::Tensor& gradOutput, const OptionalTensor& gradSum, const at::Tensor& sum,
                 double p, int64_t seed, const OptionalTensor& slot, at::ScalarType inputType,
                 const at::Tensor& scale, const at::Tensor& mean, const at::Tensor& std, double eps,
                 bool sampleStd, bool epsOutside, bool centred, bool wantsParameters) {
  const c10::DeviceGuard guard(sum.device());
  const auto dropped = like(sum, inputType);
  const auto [gradient, gradScale, gradShift] =
      backward(gradOutput, sum, scale, mean, std, gradSum, {eps, sampleStd, epsOutside, centred},
               /*wantsInput=*/true, wantsParameters, dropped, droppingOf(p, seed, slot));
  return {dropped, gradient, gradScale, gradShift};
}

}  // namespace

void registerNorm(torch::Library& library) {
  library.impl("norm_forward", TORCH_FN(normForward));
  library.impl("norm_backward", TORCH_FN(normBackward));
  library.impl("dropped_sum_norm_forward", TORCH_FN(sumForward));
  library.impl("dropped_sum_norm_backward", TORCH_FN(sumBackward));
}

}  // namespace torchformer::cuda
