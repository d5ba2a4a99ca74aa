#include "core/device/embed.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <optional>

#include "core/device/device_op.h"
#include "core/device/dropout.h"
#include "core/loops/dropout.h"
#include "core/loops/embed.h"
#include "core/support/optional.h"
#include "core/support/precision.h"

namespace torchformer::core {

namespace {

using EmbedSignature = at::Tensor(const at::Tensor&, const at::Tensor&, double,
                                  const OptionalTensor&, const OptionalTensor&, double, int64_t,
                                  const OptionalTensor&);
using EmbedBackwardSignature = at::Tensor(const at::Tensor&, const at::Tensor&,
                                          const OptionalTensor&, int64_t, int64_t, double, double,
                                          int64_t, const OptionalTensor&);

const DeviceOp<EmbedSignature>& embedOp() {
  static const DeviceOp<EmbedSignature> op("embed");
  return op;
}

const DeviceOp<EmbedBackwardSignature>& embedBackwardOp() {
  static const DeviceOp<EmbedBackwardSignature> op("embed_backward");
  return op;
}

at::Tensor embedCpu(const at::Tensor& weight, const at::Tensor& ids, double scale,
                    const OptionalTensor& table, const OptionalTensor& positions, double p,
                    int64_t seed, const OptionalTensor& slot) {
  const auto places = positions.has_value() ? positions->contiguous() : at::Tensor();
  if (isHalf(weight)) {
    // Exact copies of the rows in float32, rounded at the end.
    auto rows = widened(weight.index_select(0, ids)).mul_(scale);
    if (table.has_value()) rows.add_(table->index_select(0, places));
    return (p > 0.0 ? dropRows(rows, p, seedOf(seed, slot)) : rows).to(weight.scalar_type());
  }
  const auto rows = weight.contiguous();
  const auto added = table.has_value() ? table->contiguous() : at::Tensor();
  const auto output = at::empty({ids.numel(), weight.size(1)}, weight.options());
  const auto idRow = ids.contiguous();
  embedAll(rows, idRow, scale, added, places, p, p > 0.0 ? seedOf(seed, slot) : 0, output);
  return output;
}

at::Tensor embedMeta(const at::Tensor& weight, const at::Tensor& ids, double, const OptionalTensor&,
                     const OptionalTensor&, double, int64_t, const OptionalTensor&) {
  return at::empty({ids.numel(), weight.size(1)}, weight.options());
}

at::Tensor embedBackwardCpu(const at::Tensor& gradOutput, const at::Tensor&, const OptionalTensor&,
                            int64_t, int64_t, double scale, double p, int64_t seed,
                            const OptionalTensor& slot) {
  const auto upstream = widened(gradOutput);
  const auto dropped = p > 0.0 ? dropRows(upstream, p, seedOf(seed, slot)) : upstream;
  if (scale == 1.0) return dropped.to(gradOutput.scalar_type());
  const bool isOwn = !dropped.is_same(gradOutput);
  return (isOwn ? dropped.mul_(scale) : dropped.mul(scale)).to(gradOutput.scalar_type());
}

at::Tensor embedBackwardMeta(const at::Tensor& gradOutput, const at::Tensor&, const OptionalTensor&,
                             int64_t, int64_t, double, double, int64_t, const OptionalTensor&) {
  return at::empty(gradOutput.sizes(), gradOutput.options());
}

}  // namespace

at::Tensor embedForward(const at::Tensor& weight, const at::Tensor& table, const EmbedRows& rows) {
  return embedOp()(weight, rows.ids, rows.scale, optional(table), optional(rows.positions),
                   rows.dropoutP, rows.seed.number, rows.seed.optionalSlot());
}

at::Tensor embedBackward(const at::Tensor& gradOutput, const EmbedRows& rows, int64_t vocabulary,
                         int64_t positions) {
  return embedBackwardOp()(gradOutput, rows.ids, optional(rows.positions), vocabulary, positions,
                           rows.scale, rows.dropoutP, rows.seed.number, rows.seed.optionalSlot());
}

bool hasEmbedKernels(const at::Tensor& tensor) { return embedOp().isFor(tensor); }

void defineEmbedDeviceOps(torch::Library& library) {
  defineDeviceOp(library,
                 "embed(Tensor weight, Tensor ids, float scale, Tensor? table, Tensor? positions, "
                 "float p, int seed, Tensor? slot) -> Tensor",
                 TORCH_FN(embedCpu), TORCH_FN(embedMeta));
  defineDeviceOp(library,
                 "embed_backward(Tensor grad_output, Tensor ids, Tensor? positions, "
                 "int vocabulary, int position_count, float scale, float p, int seed, "
                 "Tensor? slot) -> Tensor",
                 TORCH_FN(embedBackwardCpu), TORCH_FN(embedBackwardMeta));
}

}  // namespace torchformer::core
