// Packed attention on GPUs: half types use flash attention (Dao 2023), which never writes the
// scores to memory; float32, and unsupported head sizes, use libtorch's "memory-efficient" kernel.

#include "core/device/packed_attention_gpu.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_efficient_attention_forward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/repeat_interleave.h>

#include <cmath>
#include <optional>
#include <tuple>

#include "core/support/precision.h"

namespace torchformer::core {

namespace {

bool takesFlash(const at::Tensor& query, int64_t width) {
  constexpr int64_t widest = 256;
  return isHalf(query) && width <= widest;
}

/// Bool [rows, 1]: whether a row's sequence has no keys. The sizes are known, so nothing
/// synchronizes.
at::Tensor withoutKeys(const DeviceSequences& queries, const DeviceSequences& keys, int64_t rows) {
  const auto lengths = [](const at::Tensor& offsets) {
    const auto count = offsets.size(0) - 1;
    return offsets.narrow(0, 1, count).sub(offsets.narrow(0, 0, count));
  };
  const auto empty = lengths(keys.offsets).eq(0);
  // An optional, because a plain number selects another overload, which repeats the whole list.
  const auto sequences =
      at::repeat_interleave(lengths(queries.offsets).to(at::kLong), std::optional<int64_t>(rows));
  return empty.index_select(0, sequences).unsqueeze(1);
}

}  // namespace

at::Tensor packedAttentionOnGpu(const at::Tensor& query, const at::Tensor& key,
                                const at::Tensor& value, const DeviceSequences& queries,
                                const DeviceSequences& keys, int64_t heads, bool causal,
                                double dropoutP) {
  const auto rows = query.size(0);
  const auto width = query.size(1) / heads;
  // An empty product, as part of the graph.
  if (rows == 0 || key.size(0) == 0) return query.mul(0);
  // The kernels read several elements at once: heads are padded with zeros to a multiple of 8,
  // which do not change the scores and are cut off the result.
  const auto paddedWidth = (width + 7) / 8 * 8;
  const auto split = [&](const at::Tensor& tensor) {
    const auto headed = tensor.reshape({tensor.size(0), heads, width});
    return paddedWidth == width ? headed : at::constant_pad_nd(headed, {0, paddedWidth - width}, 0);
  };
  const auto joined = [&](const at::Tensor& output) {
    return output.reshape({rows, heads, paddedWidth})
        .narrow(2, 0, width)
        .reshape({rows, query.size(1)});
  };
  const double scale = 1.0 / std::sqrt(static_cast<double>(width));
  if (takesFlash(query, paddedWidth)) {
    return joined(std::get<0>(at::_flash_attention_forward(
        split(query), split(key), split(value), queries.offsets, keys.offsets, queries.longest,
        keys.longest, dropoutP, causal, /*return_debug_mask=*/false, scale)));
  }
  // Query i sees the keys 0 to i.
  constexpr int64_t causalFromTopLeft = 1;
  const bool isRecorded = query.requires_grad() || key.requires_grad() || value.requires_grad();
  // Where a sequence has no keys, the kernel leaves output and gradient of the query unwritten.
  // With causal attention every query has a key.
  const auto empty = causal ? at::Tensor() : withoutKeys(queries, keys, rows);
  const auto asked = causal ? query : query.masked_fill(empty, 0);
  const auto output = joined(std::get<0>(at::_efficient_attention_forward(
      split(asked).unsqueeze(0), split(key).unsqueeze(0), split(value).unsqueeze(0),
      /*bias=*/std::nullopt, queries.offsets, keys.offsets, std::optional(queries.longest),
      std::optional(keys.longest), dropoutP, causal ? causalFromTopLeft : 0,
      /*compute_log_sumexp=*/isRecorded, scale)));
  return causal ? output : output.masked_fill(empty, 0);
}

}  // namespace torchformer::core
