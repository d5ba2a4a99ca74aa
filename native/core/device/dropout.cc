#include "core/device/dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "core/device/device_op.h"
#include "core/loops/dropout.h"
#include "core/support/check.h"
#include "core/support/optional.h"
#include "core/support/precision.h"

namespace torchformer::core {

namespace {

using MaskSignature = at::Tensor(const at::Tensor&, double, int64_t, const OptionalTensor&);
using DropSignature = at::Tensor(const at::Tensor&, double, int64_t, const OptionalTensor&,
                                 const OptionalTensor&, at::ScalarType);

const DeviceOp<MaskSignature>& maskOp() {
  static const DeviceOp<MaskSignature> op("dropout_mask");
  return op;
}

const DeviceOp<DropSignature>& dropOp() {
  static const DeviceOp<DropSignature> op("dropout");
  return op;
}

at::Tensor emptyMask(const at::Tensor& like) {
  return at::empty_like(like, like.options().dtype(at::kBool), at::MemoryFormat::Contiguous);
}

at::Tensor maskCpu(const at::Tensor& like, double p, int64_t seed, const OptionalTensor& slot) {
  auto kept = emptyMask(like);
  keepMask(kept, p, seedOf(seed, slot));
  return kept;
}

at::Tensor maskMeta(const at::Tensor& like, double, int64_t, const OptionalTensor&) {
  return emptyMask(like);
}

at::Tensor dropCpu(const at::Tensor& input, double p, int64_t seed, const OptionalTensor& slot,
                   const OptionalTensor& residual, at::ScalarType outputType) {
  // Half types: exact copies in float32, rounded at the end.
  const auto added = residual.has_value() ? widened(*residual) : at::Tensor();
  return dropRows(widened(input), p, seedOf(seed, slot), added).to(outputType);
}

at::Tensor dropMeta(const at::Tensor& input, double, int64_t, const OptionalTensor&,
                    const OptionalTensor&, at::ScalarType outputType) {
  return at::empty(input.sizes(), input.options().dtype(outputType));
}

}  // namespace

at::Tensor keptMask(const at::Tensor& like, double p, const Seed& seed) {
  if (maskOp().isFor(like)) return maskOp()(like, p, seed.number, seed.optionalSlot());
  TF_CHECK(ERR_NOT_IMPLEMENTED, !seed.slot.defined(),
           "a graph with dropout needs the kernels of libtorchformer_cuda, which is not open");
  const auto onCpu = at::empty(like.sizes(), at::TensorOptions().dtype(at::kBool));
  keepMask(onCpu, p, static_cast<uint64_t>(seed.number));
  return onCpu.to(like.device());
}

// A product instead of masked_fill, whose kernel in libtorch takes twice as long.
at::Tensor applyKept(const at::Tensor& input, const at::Tensor& kept, double p) {
  return input.mul(kept).mul_(survivorScale(p));
}

at::Tensor drop(const at::Tensor& input, double p, const Seed& seed, const at::Tensor& residual,
                at::ScalarType outputType) {
  const auto added = optional(residual);
  if (dropOp().isFor(input)) {
    return dropOp()(input, p, seed.number, seed.optionalSlot(), added, outputType);
  }
  const auto dropped = applyKept(input, keptMask(input, p, seed), p);
  return (residual.defined() ? residual.add(dropped) : dropped).to(outputType);
}

void defineDroppingDeviceOps(torch::Library& library) {
  defineDeviceOp(library, "dropout_mask(Tensor like, float p, int seed, Tensor? slot) -> Tensor",
                 TORCH_FN(maskCpu), TORCH_FN(maskMeta));
  defineDeviceOp(library,
                 "dropout(Tensor input, float p, int seed, Tensor? slot, Tensor? residual, "
                 "ScalarType output_type) -> Tensor",
                 TORCH_FN(dropCpu), TORCH_FN(dropMeta));
}

}  // namespace torchformer::core
