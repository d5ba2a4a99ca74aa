// Scaled dot-product attention with several heads over concatenated sequences.
//
// Purpose: attention of a whole batch without padding. All other layers of the model process each
//   token separately; this op is the only one that needs the boundaries of sequences.
// Shapes:  query [Nq, H * Dk], key [Nk, H * Dk], value [Nk, H * Dk]: the concatenated rows of B
//   sequences, each row with all heads side by side; query_offsets, key_offsets [B + 1]
//   int64: sequence b has the rows offsets[b] to offsets[b + 1] - 1 -> output [Nq, H * Dk].
// Formula: as in attention.cc, for each sequence and head. With `causal`, query i sees the keys 0
//   to i of its sequence.
// Backward: as there; the weights are recomputed from the scores and log(sum(exp(scores))).
// Saved:   query, key, value, the offsets, one number for each row and head, and the seed of the
//   dropout mask.
// On a GPU: libtorch's kernels (device/packed_attention_gpu.cc); float64 uses the reference.
//   Offsets may then be on the GPU, given with the lengths of the longest sequences, so nothing is
//   read back.
// Hazards:
//   - Offsets on a GPU are not checked. Offsets beyond the rows read outside the tensors, and
//     lengths above the given longest one leave rows unwritten: the caller must have checked them.
//   - A sequence without keys gives zeros, and no gradient.
//   - The dropout mask is a function of (seed, query row, head, key): see support/dropout_bits.h.
//     The seed comes from the generator, one number per call.
//   - Rows may be views into wider rows (one product for query, key and value): only the elements
//     of one row must be contiguous.

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>
#include <string>
#include <vector>

#include "core/device/dropout.h"
#include "core/device/packed_attention_gpu.h"
#include "core/loops/packed_attention.h"
#include "core/ops/ops.h"
#include "core/support/autograd.h"
#include "core/support/check.h"
#include "core/support/optional.h"
#include "core/support/precision.h"

namespace torchformer::core {

namespace {

using torch::autograd::AutogradContext;

constexpr auto packedAttentionName = "packed_attention";

/// The tensors of one call.
struct Packed {
  at::Tensor query, key, value, queryOffsets, keyOffsets;
  // For sequences whose offsets are not on the CPU; else -1.
  int64_t longestQuery = -1;
  int64_t longestKey = -1;
};

void checkOffsets(const char* name, const at::Tensor& offsets, int64_t longest,
                  const char* rowsName, const at::Tensor& rows) {
  TF_CHECK(ERR_DTYPE,
           offsets.layout() == at::kStrided &&
               (offsets.scalar_type() == at::kLong || offsets.scalar_type() == at::kInt),
           packedAttentionName, ": ", name, " must be dense int64 or int32, got ",
           offsets.scalar_type());
  TF_CHECK(ERR_SHAPE, offsets.dim() == 1 && offsets.size(0) >= 1, packedAttentionName, ": ", name,
           " must be [sequences + 1], got ", offsets.sizes());
  if (!offsets.is_cpu()) {
    TF_CHECK(ERR_DEVICE, offsets.device() == rows.device(), packedAttentionName, ": ", name,
             " must be on the CPU or on the device of query (", rows.device(), "), got ",
             offsets.device());
    TF_CHECK(ERR_ARGUMENT, longest >= 0, packedAttentionName, ": ", name, " on ", offsets.device(),
             " need longest_query and longest_key, the lengths of the longest sequences");
    return;
  }
  const auto list = offsets.to(at::kLong).contiguous();
  const auto* data = list.const_data_ptr<int64_t>();
  const auto last = offsets.size(0) - 1;
  TF_CHECK(ERR_SHAPE, data[0] == 0 && data[last] == rows.size(0), packedAttentionName, ": ", name,
           " must go from 0 to the ", rows.size(0), " rows of ", rowsName, ", got ", data[0],
           " to ", data[last]);
  for (int64_t i = 0; i < last; ++i) {
    TF_CHECK(ERR_ARGUMENT, data[i] <= data[i + 1], packedAttentionName, ": ", name,
             " must not fall, got ", data[i], " before ", data[i + 1]);
  }
}

void checkArguments(const Packed& t, int64_t heads, bool causal, double dropoutP,
                    const OptionalGenerator& generator) {
  checkFloating(packedAttentionName, "query", t.query);
  checkMatches(packedAttentionName, "key", t.key, "query", t.query);
  checkMatches(packedAttentionName, "value", t.value, "query", t.query);
  TF_CHECK(ERR_SHAPE, t.query.dim() == 2, packedAttentionName, ": query must be [Nq, H * Dk], got ",
           t.query.sizes());
  const auto width = t.query.size(1);
  TF_CHECK(ERR_SHAPE, heads >= 1 && width >= 1 && width % heads == 0, packedAttentionName,
           ": heads (", heads, ") must divide the width of query, ", t.query.sizes());
  TF_CHECK(ERR_SHAPE, t.key.dim() == 2 && t.key.size(1) == width, packedAttentionName,
           ": key must be [Nk, ", width, "] for a query of ", t.query.sizes(), ", got ",
           t.key.sizes());
  TF_CHECK(ERR_SHAPE, t.value.sizes() == t.key.sizes(), packedAttentionName,
           ": value must be like key ", t.key.sizes(), ", got ", t.value.sizes());
  checkOffsets("query_offsets", t.queryOffsets, t.longestQuery, "query", t.query);
  checkOffsets("key_offsets", t.keyOffsets, t.longestKey, "key", t.key);
  TF_CHECK(ERR_DEVICE, t.queryOffsets.device() == t.keyOffsets.device(), packedAttentionName,
           ": query_offsets and key_offsets must be on one device, got ", t.queryOffsets.device(),
           " and ", t.keyOffsets.device());
  TF_CHECK(ERR_SHAPE, t.queryOffsets.size(0) == t.keyOffsets.size(0), packedAttentionName,
           ": query_offsets and key_offsets must have the same number of sequences, got ",
           t.queryOffsets.size(0) - 1, " and ", t.keyOffsets.size(0) - 1);
  TF_CHECK(ERR_SHAPE, !causal || !t.queryOffsets.is_cpu() || t.queryOffsets.equal(t.keyOffsets),
           packedAttentionName,
           ": causal attention is within a sequence: query_offsets and key_offsets must be equal");
  checkProbability(packedAttentionName, "dropout_p", dropoutP);
  checkGenerator(packedAttentionName, generator);
}

/// float16 and bfloat16 become float32; rows become contiguous within themselves.
at::Tensor prepared(const at::Tensor& tensor) {
  const auto wide = widened(tensor);
  return wide.size(1) == 1 || wide.stride(1) == 1 ? wide : wide.contiguous();
}

/// Calls visit(sequence, head, buffer) for all of them, on all threads. `buffer` points to
/// `buffers` elements of T for each thread.
template <typename T, typename Visit>
void forEachHead(const std::vector<int64_t>& order, int64_t heads, int64_t bufferSize,
                 const Visit& visit) {
  const auto count = static_cast<int64_t>(order.size()) * heads;
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    std::vector<T> buffer(static_cast<size_t>(bufferSize));
    for (int64_t i = begin; i < end; ++i) {
      visit(order[static_cast<size_t>(i / heads)], i % heads, buffer.data());
    }
  });
}

/// Sequences and the head's part of their rows.
template <typename T>
struct Layout {
  const int64_t* queryOffsets;
  const int64_t* keyOffsets;
  int64_t width;

  template <typename Element>
  static HeadRows<Element> rows(Element* data, int64_t stride, const int64_t* offsets,
                                int64_t sequence, int64_t head, int64_t width) {
    return {data + offsets[sequence] * stride + head * width,
            offsets[sequence + 1] - offsets[sequence], stride};
  }
  HeadRows<const T> queries(const at::Tensor& tensor, int64_t sequence, int64_t head) const {
    return rows(tensor.const_data_ptr<T>(), tensor.stride(0), queryOffsets, sequence, head, width);
  }
  HeadRows<const T> keys(const at::Tensor& tensor, int64_t sequence, int64_t head) const {
    return rows(tensor.const_data_ptr<T>(), tensor.stride(0), keyOffsets, sequence, head, width);
  }
  HeadRows<T> queriesOut(const at::Tensor& tensor, int64_t sequence, int64_t head) const {
    return rows(tensor.mutable_data_ptr<T>(), tensor.stride(0), queryOffsets, sequence, head,
                width);
  }
  HeadRows<T> keysOut(const at::Tensor& tensor, int64_t sequence, int64_t head) const {
    return rows(tensor.mutable_data_ptr<T>(), tensor.stride(0), keyOffsets, sequence, head, width);
  }
};

/// The sequences that have work, and the buffer that the largest of them needs.
struct Work {
  std::vector<int64_t> sequences;
  int64_t bufferSize = 0;
};

Work workOf(const int64_t* queryOffsets, const int64_t* keyOffsets, int64_t sequences) {
  Work work;
  for (int64_t b = 0; b < sequences; ++b) {
    const auto queries = queryOffsets[b + 1] - queryOffsets[b];
    const auto keys = keyOffsets[b + 1] - keyOffsets[b];
    if (queries == 0 || keys == 0) continue;
    work.sequences.push_back(b);
    work.bufferSize = std::max(work.bufferSize, scoreBufferSize(queries, keys));
  }
  return work;
}

struct PackedAttentionResult {
  at::Tensor output;   // [Nq, H * Dk]
  at::Tensor logSums;  // [Nq, H]
};

template <typename T>
PackedAttentionResult forwardLoop(const Packed& t, const AttentionSettings& settings) {
  PackedAttentionResult result;
  result.output = at::zeros({t.query.size(0), t.query.size(1)}, t.query.options());
  result.logSums = at::zeros({t.query.size(0), settings.heads}, t.query.options());
  const Layout<T> layout{t.queryOffsets.const_data_ptr<int64_t>(),
                         t.keyOffsets.const_data_ptr<int64_t>(), settings.width};
  const auto work = workOf(layout.queryOffsets, layout.keyOffsets, t.queryOffsets.size(0) - 1);
  auto* logSums = result.logSums.template mutable_data_ptr<T>();
  forEachHead<T>(work.sequences, settings.heads, work.bufferSize,
                 [&](int64_t sequence, int64_t head, T* buffer) {
                   const auto first = layout.queryOffsets[sequence];
                   attendHead<T>(layout.queries(t.query, sequence, head),
                                 layout.keys(t.key, sequence, head),
                                 layout.keys(t.value, sequence, head),
                                 layout.queriesOut(result.output, sequence, head),
                                 logSums + first * settings.heads + head, settings.heads, settings,
                                 {first, head}, buffer);
                 });
  return result;
}

template <typename T>
variable_list backwardLoop(const at::Tensor& gradOutput, const Packed& t, const at::Tensor& logSums,
                           const AttentionSettings& settings) {
  const auto gradQuery = at::zeros({t.query.size(0), t.query.size(1)}, t.query.options());
  const auto gradKey = at::zeros({t.key.size(0), t.key.size(1)}, t.key.options());
  const auto gradValue = at::zeros({t.key.size(0), t.key.size(1)}, t.key.options());
  const Layout<T> layout{t.queryOffsets.const_data_ptr<int64_t>(),
                         t.keyOffsets.const_data_ptr<int64_t>(), settings.width};
  const auto work = workOf(layout.queryOffsets, layout.keyOffsets, t.queryOffsets.size(0) - 1);
  const auto* sums = logSums.const_data_ptr<T>();
  forEachHead<T>(work.sequences, settings.heads, 2 * work.bufferSize,
                 [&](int64_t sequence, int64_t head, T* buffer) {
                   const auto first = layout.queryOffsets[sequence];
                   attendHeadBackward<T>(
                       layout.queries(gradOutput, sequence, head),
                       layout.queries(t.query, sequence, head), layout.keys(t.key, sequence, head),
                       layout.keys(t.value, sequence, head), sums + first * settings.heads + head,
                       settings.heads, layout.queriesOut(gradQuery, sequence, head),
                       layout.keysOut(gradKey, sequence, head),
                       layout.keysOut(gradValue, sequence, head), settings, {first, head}, buffer,
                       buffer + work.bufferSize);
                 });
  return {gradQuery, gradKey, gradValue};
}

/// Offsets on the CPU, where the loops read them.
at::Tensor hostOffsets(const at::Tensor& offsets) {
  return offsets.to(at::kCPU, at::kLong).contiguous();
}

Packed preparedTensors(const Packed& t) {
  return {prepared(t.query), prepared(t.key), prepared(t.value), hostOffsets(t.queryOffsets),
          hostOffsets(t.keyOffsets)};
}

/// Sequences for the kernels of a GPU. Offsets on the CPU are copied without synchronizing.
DeviceSequences deviceSequences(const at::Tensor& offsets, int64_t longest,
                                const at::Tensor& rows) {
  if (offsets.is_cpu()) {
    const auto lengths = offsets.diff();
    longest = lengths.numel() == 0 ? 0 : lengths.max().item<int64_t>();
  }
  return {offsets.to(at::TensorOptions(rows.device()).dtype(at::kInt), /*non_blocking=*/true),
          longest};
}

bool runsOnGpu(const Packed& t) {
  return t.query.is_cuda() && t.query.scalar_type() != at::kDouble;
}

at::Tensor onGpu(const Packed& t, int64_t heads, bool causal, double dropoutP) {
  const auto queries = deviceSequences(t.queryOffsets, t.longestQuery, t.query);
  const auto keys = causal ? queries : deviceSequences(t.keyOffsets, t.longestKey, t.query);
  return packedAttentionOnGpu(t.query, t.key, t.value, queries, keys, heads, causal, dropoutP);
}

AttentionSettings settingsOf(const Packed& t, int64_t heads, bool causal, double dropoutP,
                             uint64_t seed) {
  return {heads, t.query.size(1) / heads, causal, dropoutP, seed};
}

PackedAttentionResult forwardPass(const Packed& given, const AttentionSettings& settings) {
  const auto t = preparedTensors(given);
  auto result = t.query.scalar_type() == at::kDouble ? forwardLoop<double>(t, settings)
                                                     : forwardLoop<float>(t, settings);
  result.output = result.output.to(given.query.scalar_type());
  return result;
}

variable_list backwardPass(const at::Tensor& gradOutput, const Packed& given,
                           const at::Tensor& logSums, const AttentionSettings& settings) {
  const auto t = preparedTensors(given);
  const auto upstream = prepared(gradOutput);
  auto result = t.query.scalar_type() == at::kDouble
                    ? backwardLoop<double>(upstream, t, logSums, settings)
                    : backwardLoop<float>(upstream, t, logSums, settings);
  for (auto& gradient : result) gradient = gradient.to(given.query.scalar_type());
  return result;
}

/// The formula in plain ops, sequence by sequence.
at::Tensor composed(const Packed& t, const AttentionSettings& settings) {
  const auto heads = settings.heads;
  const auto sequences = t.queryOffsets.size(0) - 1;
  const auto queryList = hostOffsets(t.queryOffsets);
  const auto keyList = hostOffsets(t.keyOffsets);
  const auto* queryOffsets = queryList.const_data_ptr<int64_t>();
  const auto* keyOffsets = keyList.const_data_ptr<int64_t>();
  const auto dtype = t.query.scalar_type();
  std::vector<at::Tensor> outputs;
  for (int64_t b = 0; b < sequences; ++b) {
    const auto first = queryOffsets[b];
    const auto queries = queryOffsets[b + 1] - first;
    const auto keys = keyOffsets[b + 1] - keyOffsets[b];
    const auto q = t.query.narrow(0, first, queries);
    if (queries == 0 || keys == 0) {
      // Part of the graph, with a gradient of zero.
      outputs.push_back(q.mul(0));
      continue;
    }
    const auto split = [&](const at::Tensor& rows, int64_t length) {
      return widened(rows.reshape({length, heads, settings.width}).transpose(0, 1));
    };
    const auto k = split(t.key.narrow(0, keyOffsets[b], keys), keys);
    const auto v = split(t.value.narrow(0, keyOffsets[b], keys), keys);
    auto scores = at::matmul(split(q, queries), k.transpose(1, 2)) * settings.scoreScale();
    if (settings.causal) {
      const auto place = at::arange(keys, at::TensorOptions(t.query.device()));
      scores =
          scores.masked_fill(place.gt(place.unsqueeze(1)), -std::numeric_limits<float>::infinity());
    }
    auto weights = at::softmax(scores, /*dim=*/-1);
    if (settings.dropoutP > 0.0) {
      // Rows of the mask are (query row, head); this sequence's are [queries, heads, keys].
      const auto kept = keptMask(at::empty({(first + queries) * heads, keys}, t.query.options()),
                                 settings.dropoutP, {static_cast<int64_t>(settings.seed), {}})
                            .narrow(0, first * heads, queries * heads)
                            .view({queries, heads, keys})
                            .transpose(0, 1);
      weights = applyKept(weights, kept, settings.dropoutP);
    }
    outputs.push_back(
        at::matmul(weights, v).transpose(0, 1).reshape({queries, t.query.size(1)}).to(dtype));
  }
  return outputs.empty() ? t.query.mul(0) : at::cat(outputs);
}

struct PackedAttentionFunction : torch::autograd::Function<PackedAttentionFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query,
                            const at::Tensor& key, const at::Tensor& value,
                            const at::Tensor& queryOffsets, const at::Tensor& keyOffsets,
                            const AttentionSettings& settings) {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    const auto result = forwardPass({query, key, value, queryOffsets, keyOffsets}, settings);
    context->save_for_backward({query, key, value, queryOffsets, keyOffsets, result.logSums});
    context->saved_data["heads"] = settings.heads;
    context->saved_data["causal"] = settings.causal;
    context->saved_data["dropout_p"] = settings.dropoutP;
    context->saved_data["seed"] = static_cast<int64_t>(settings.seed);
    context->set_materialize_grads(false);
    return result.output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list result(6);
    if (!gradients[0].defined()) return result;
    const auto saved = context->get_saved_variables();
    const Packed t{saved[0], saved[1], saved[2], saved[3], saved[4]};
    const auto settings =
        settingsOf(t, context->saved_data["heads"].toInt(), context->saved_data["causal"].toBool(),
                   context->saved_data["dropout_p"].toDouble(),
                   static_cast<uint64_t>(context->saved_data["seed"].toInt()));
    auto found =
        c10::GradMode::is_enabled()
            ? differentiableGradients(
                  [&](const variable_list& inputs) -> variable_list {
                    return {composed(
                        {inputs[0], inputs[1], inputs[2], t.queryOffsets, t.keyOffsets}, settings)};
                  },
                  {t.query, t.key, t.value}, gradients)
            : backwardPass(gradients[0], t, saved[5], settings);
    for (size_t i = 0; i < found.size(); ++i) result[i] = std::move(found[i]);
    return result;
  }
};

uint64_t seedNumber(double dropoutP, const OptionalGenerator& generator, const at::Tensor& query) {
  const auto seed = drawSeed(dropoutP, generator, query);
  return seedOf(seed.number, seed.optionalSlot());
}

at::Tensor packedAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const at::Tensor& queryOffsets, const at::Tensor& keyOffsets,
                           int64_t heads, bool causal, double dropoutP, int64_t longestQuery,
                           int64_t longestKey, OptionalGenerator generator) {
  const Packed t{query, key, value, queryOffsets, keyOffsets, longestQuery, longestKey};
  checkArguments(t, heads, causal, dropoutP, generator);
  if (query.is_meta()) return at::empty_like(query, at::MemoryFormat::Contiguous);
  // libtorch's kernels have their own gradients.
  if (runsOnGpu(t)) return onGpu(t, heads, causal, dropoutP);
  const auto seed = seedNumber(dropoutP, generator, query);
  const auto settings = settingsOf(t, heads, causal, dropoutP, seed);
  if (!query.is_cpu()) return composed(t, settings);
  if (mustRecord({query, key, value})) {
    return PackedAttentionFunction::apply(query, key, value, queryOffsets, keyOffsets, settings);
  }
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  return forwardPass(t, settings).output;
}

at::Tensor packedAttentionReference(const at::Tensor& query, const at::Tensor& key,
                                    const at::Tensor& value, const at::Tensor& queryOffsets,
                                    const at::Tensor& keyOffsets, int64_t heads, bool causal,
                                    double dropoutP, int64_t longestQuery, int64_t longestKey,
                                    OptionalGenerator generator) {
  const Packed t{query, key, value, queryOffsets, keyOffsets, longestQuery, longestKey};
  checkArguments(t, heads, causal, dropoutP, generator);
  return composed(t,
                  settingsOf(t, heads, causal, dropoutP, seedNumber(dropoutP, generator, query)));
}

}  // namespace

void registerPackedAttention(torch::Library& library) {
  defineOp(library, "packed_attention",
           "(Tensor query, Tensor key, Tensor value, Tensor query_offsets, Tensor key_offsets, "
           "int heads, bool causal=False, float dropout_p=0.0, *, int longest_query=-1, "
           "int longest_key=-1, Generator? generator=None) -> Tensor",
           TORCH_FN(packedAttention), TORCH_FN(packedAttentionReference));
}

}  // namespace torchformer::core
