// The device op of core/device/activation_dropout.cc on CUDA.

#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>

#include <optional>

#include "activation_dropout_kernel.h"
#include "core/support/activation.h"
#include "tensors.h"

namespace torchformer::cuda {

namespace {

using core::Activation;

static_assert(static_cast<int>(KernelActivation::relu) == static_cast<int>(Activation::relu) &&
              static_cast<int>(KernelActivation::gelu) == static_cast<int>(Activation::gelu) &&
              static_cast<int>(KernelActivation::swiglu) == static_cast<int>(Activation::swiglu));

/// A bias as the kernel requires it: float32 if one of the two is.
at::Tensor bias(const OptionalTensor& tensor, at::ScalarType type) {
  return tensor.has_value() ? dense(tensor->to(type)) : at::Tensor();
}

at::Tensor hidden(const at::Tensor& main, const OptionalTensor& mainBias,
                  const OptionalTensor& gate, const OptionalTensor& gateBias, int64_t activation,
                  double p, int64_t seed, const OptionalTensor& slot) {
  const c10::DeviceGuard guard(main.device());
  const auto type = main.scalar_type();
  const auto isWide = [](const OptionalTensor& tensor) {
    return tensor.has_value() && tensor->scalar_type() == at::kFloat;
  };
  const auto biasType = isWide(mainBias) || isWide(gateBias) ? at::kFloat : type;
  const auto mainBiases = bias(mainBias, biasType);
  const auto gateBiases = bias(gateBias, biasType);
  const auto kind = static_cast<KernelActivation>(activation);
  const auto output = kind == KernelActivation::relu ? at::Tensor() : at::empty_like(main);
  const auto [rows, columns] = rowSizes(main);
  check("feed_forward",
        launchActivationDropout(
            {kind, elementOf(type), mutableDataOf(main), mutableDataOf(core::orNone(gate)),
             mutableDataOf(output), dataOf(mainBiases), dataOf(gateBiases), elementOf(biasType),
             rows, columns, core::closedValue, droppingOf(p, seed, slot)},
            currentStream(main.device())));
  return output;
}

}  // namespace

void registerActivationDropout(torch::Library& library) {
  library.impl("activation_dropout_", TORCH_FN(hidden));
}

}  // namespace torchformer::cuda
