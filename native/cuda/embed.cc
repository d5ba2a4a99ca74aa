// The device ops of core/device/embed.cc on CUDA.

#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>

#include <optional>

#include "embed_kernel.h"
#include "tensors.h"

namespace torchformer::cuda {

namespace {

constexpr auto embedName = "embed";

/// A table in the backward pass, where only its number of rows is used.
LookedUp lookedUp(const at::Tensor& ids, int64_t size) {
  return {nullptr, ids.defined() ? ids.const_data_ptr<int64_t>() : nullptr, size};
}

at::Tensor embed(const at::Tensor& weight, const at::Tensor& ids, double scale,
                 const OptionalTensor& table, const OptionalTensor& positions, double p,
                 int64_t seed, const OptionalTensor& slot) {
  const c10::DeviceGuard guard(weight.device());
  const auto type = weight.scalar_type();
  const auto rows = dense(weight);
  const auto idRow = dense(ids);
  const auto added = table.has_value() ? dense(*table) : at::Tensor();
  const auto places = positions.has_value() ? dense(*positions) : at::Tensor();
  const auto output = at::empty({ids.numel(), weight.size(1)}, weight.options());
  EmbedArguments arguments{elementOf(type),
                           lookedUp(idRow, weight.size(0)),
                           lookedUp(places, added.defined() ? added.size(0) : 0),
                           /*gradOutput=*/nullptr,
                           mutableDataOf(output),
                           ids.numel(),
                           weight.size(1),
                           scale,
                           droppingOf(p, seed, slot)};
  arguments.weight.data = dataOf(rows);
  arguments.table.data = dataOf(added);
  check(embedName, launchEmbed(arguments, currentStream(weight.device())));
  return output;
}

at::Tensor embedBackward(const at::Tensor& gradOutput, const at::Tensor& ids,
                         const OptionalTensor& positions, int64_t vocabulary, int64_t positionCount,
                         double scale, double p, int64_t seed, const OptionalTensor& slot) {
  const c10::DeviceGuard guard(gradOutput.device());
  const auto upstream = dense(gradOutput);
  const auto idRow = dense(ids);
  const auto places = positions.has_value() ? dense(*positions) : at::Tensor();
  const auto output = at::empty(upstream.sizes(), upstream.options());
  check(embedName, launchEmbedBackward(
                       {elementOf(upstream.scalar_type()), lookedUp(idRow, vocabulary),
                        lookedUp(places, positionCount), dataOf(upstream), mutableDataOf(output),
                        ids.numel(), upstream.size(1), scale, droppingOf(p, seed, slot)},
                       currentStream(gradOutput.device())));
  return output;
}

}  // namespace

void registerEmbed(torch::Library& library) {
  library.impl("embed", TORCH_FN(embed));
  library.impl("embed_backward", TORCH_FN(embedBackward));
}

}  // namespace torchformer::cuda
