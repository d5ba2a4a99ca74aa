// The device ops of core/device/dropout.cc on CUDA.

#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>

#include "dropout_kernel.h"
#include "tensors.h"

namespace torchformer::cuda {

namespace {

at::Tensor drop(const at::Tensor& input, double p, int64_t seed, const OptionalTensor& slot,
                const OptionalTensor& residual, at::ScalarType outputType) {
  const c10::DeviceGuard guard(input.device());
  const auto rows = dense(input);
  const auto added = residual.has_value() ? dense(*residual) : at::Tensor();
  const auto output = at::empty(input.sizes(), input.options().dtype(outputType));
  const auto [count, columns] = rowSizes(rows);
  check("dropout", launchDrop({elementOf(rows.scalar_type()), elementOf(outputType), dataOf(rows),
                               dataOf(added), mutableDataOf(output), count, columns,
                               droppingOf(p, seed, slot)},
                              currentStream(input.device())));
  return output;
}

at::Tensor mask(const at::Tensor& like, double p, int64_t seed, const OptionalTensor& slot) {
  const c10::DeviceGuard guard(like.device());
  const auto kept = at::empty(like.sizes(), like.options().dtype(at::kBool));
  const auto [count, columns] = rowSizes(kept);
  check("dropout", launchKeptMask(kept.mutable_data_ptr<bool>(), count, columns,
                                  droppingOf(p, seed, slot), currentStream(like.device())));
  return kept;
}

}  // namespace

void registerDropout(torch::Library& library) {
  library.impl("dropout", TORCH_FN(drop));
  library.impl("dropout_mask", TORCH_FN(mask));
}

}  // namespace torchformer::cuda
