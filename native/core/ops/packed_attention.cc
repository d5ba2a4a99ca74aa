// Scaled dot-product attention with several heads over concatenated sequences.
//
// Purpose: attention of a whole batch without padding. All other layers of the model process each
//   token separately; this op is the only one that needs the boundaries of sequences.
// Shapes:  query [Nq, H * Dk], key [Nk, H * Dk], value [Nk, H * Dk]: the concatenated rows of B
//   sequences, each row with all heads side by side; query_offsets, key_offsets [B + 1]
//   int64: sequence b has the rows offsets[b] to offsets[b + 1] - 1 -> output [Nq, H * Dk].
// Formula: as in attention.cc, for each sequence and head. With `causal`, query i sees the keys 0
//   to i of its sequence.
// Backward: as there; the weights are recomputed from the scores and their highest value and sum.
// Saved:   query, key, value, the offsets, two numbers for each row and head, and the seed of the
//   dropout mask.
// On a GPU: libtorch's kernels (device/packed_attention_gpu.cc); float64 uses the reference.
//   Offsets may then be on the GPU, given with the lengths of the longest sequences, so nothing is
//   read back.
// Hazards:
//   - Offsets on a GPU are not checked. Offsets beyond the rows read outside the tensors, and
//     lengths above the given longest one leave rows unwritten: the caller must have checked them.
//   - A sequence without keys gives zeros, and no gradient. It is no work for a thread, so its rows
//     are zeroed apart: results are not zero before.
//   - The bits of a sequence's results depend on nothing outside it: a head of a sequence is the
//     work of one thread, in an order that depends on its sizes alone.
//   - The dropout mask is a function of (seed, query row, head, key): see support/dropout_bits.h.
//     The seed comes from the generator, one number per call.
//   - Rows may be views into wider rows (one product for query, key and value): only the elements
//     of one row must be contiguous.

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/device/dropout.h"
#include "core/device/packed_attention_gpu.h"
#include "core/loops/attention.h"
#include "core/loops/longest_first.h"
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

struct PackedSettings {
  int64_t heads;
  AttentionSettings each;  // of a head
};

/// float16 and bfloat16 become float32; rows become contiguous within themselves.
at::Tensor prepared(const at::Tensor& tensor) {
  const auto wide = widened(tensor);
  return wide.size(1) == 1 || wide.stride(1) == 1 ? wide : wide.contiguous();
}

/// The heads of sequences within the tensors of a call.
template <typename T>
class PackedHeads {
 public:
  PackedHeads(const Packed& t, int64_t heads, const AttentionSettings& settings)
      : t_(t),
        heads_(heads),
        settings_(settings),
        queryOffsets_(t.queryOffsets.const_data_ptr<int64_t>()),
        keyOffsets_(t.keyOffsets.const_data_ptr<int64_t>()) {}

  int64_t sequences() const { return t_.queryOffsets.size(0) - 1; }
  int64_t queries(int64_t sequence) const {
    return queryOffsets_[sequence + 1] - queryOffsets_[sequence];
  }
  int64_t keys(int64_t sequence) const { return keyOffsets_[sequence + 1] - keyOffsets_[sequence]; }

  Head<T> head(int64_t sequence, int64_t head) const {
    return {queryRows(t_.query, sequence, head),     keyRows(t_.key, sequence, head),
            keyRows(t_.value, sequence, head),       {},
            queryOffsets_[sequence] * heads_ + head, heads_};
  }
  HeadRows<const T> queryRows(const at::Tensor& rows, int64_t sequence, int64_t head) const {
    return part(rows.const_data_ptr<T>(), rows, queryOffsets_, sequence, head);
  }
  HeadRows<const T> keyRows(const at::Tensor& rows, int64_t sequence, int64_t head) const {
    return part(rows.const_data_ptr<T>(), rows, keyOffsets_, sequence, head);
  }
  HeadRows<T> queryRowsOut(const at::Tensor& rows, int64_t sequence, int64_t head) const {
    return part(rows.mutable_data_ptr<T>(), rows, queryOffsets_, sequence, head);
  }
  HeadRows<T> keyRowsOut(const at::Tensor& rows, int64_t sequence, int64_t head) const {
    return part(rows.mutable_data_ptr<T>(), rows, keyOffsets_, sequence, head);
  }
  /// Of [2, H, Nq].
  template <typename Element>
  SoftmaxSums<Element> sums(Element* data, int64_t sequence, int64_t head) const {
    const auto rows = t_.query.size(0);
    Element* const highest = data + head * rows + queryOffsets_[sequence];
    return {highest, highest + heads_ * rows};
  }

  /// Zeros the rows of sequences without keys, of a tensor with a row for each query.
  void clearWithoutKeys(const at::Tensor& rows) const {
    for (int64_t b = 0; b < sequences(); ++b) {
      if (keys(b) == 0) rows.narrow(0, queryOffsets_[b], queries(b)).zero_();
    }
  }
  /// The same of sequences without queries, with a row for each key.
  void clearWithoutQueries(const at::Tensor& rows) const {
    for (int64_t b = 0; b < sequences(); ++b) {
      if (queries(b) == 0) rows.narrow(0, keyOffsets_[b], keys(b)).zero_();
    }
  }

  /// Calls visit(sequence, head, scratch) for all that have queries and keys, on all threads.
  template <typename Visit>
  void forEach(const Visit& visit) const {
    std::vector<CostedItem> items;
    int64_t scratchSize = 0;
    for (int64_t b = 0; b < sequences(); ++b) {
      if (queries(b) == 0 || keys(b) == 0) continue;
      items.push_back({b, queries(b) * keys(b) * settings_.width});
      scratchSize = std::max(scratchSize, attentionScratchSize<T>(queries(b), keys(b), settings_));
    }
    const LongestFirst work(std::move(items), heads_);
    const auto scratch = at::empty({work.threads(), scratchSize}, t_.query.options());
    T* const buffers = scratch.template mutable_data_ptr<T>();
    work.forEach([&](int64_t sequence, int64_t head, int64_t thread) {
      visit(sequence, head, buffers + thread * scratchSize);
    });
  }

 private:
  template <typename Element>
  HeadRows<Element> part(Element* data, const at::Tensor& rows, const int64_t* offsets,
                         int64_t sequence, int64_t head) const {
    const auto stride = rows.stride(0);
    return {data + offsets[sequence] * stride + head * settings_.width,
            offsets[sequence + 1] - offsets[sequence], stride};
  }

  const Packed& t_;
  int64_t heads_;
  const AttentionSettings& settings_;
  const int64_t* queryOffsets_;
  const int64_t* keyOffsets_;
};

struct PackedAttentionResult {
  at::Tensor output;  // [Nq, H * Dk]
  at::Tensor sums;    // [2, H, Nq], of sequences with keys
};

template <typename T>
PackedAttentionResult forwardLoop(const Packed& t, const PackedSettings& settings) {
  const PackedHeads<T> heads(t, settings.heads, settings.each);
  PackedAttentionResult result;
  result.output = at::empty({t.query.size(0), t.query.size(1)}, t.query.options());
  result.sums = at::empty({2, settings.heads, t.query.size(0)}, t.query.options());
  heads.clearWithoutKeys(result.output);
  T* const sums = result.sums.template mutable_data_ptr<T>();
  heads.forEach([&](int64_t sequence, int64_t head, T* scratch) {
    attendHead<T>(heads.head(sequence, head), heads.queryRowsOut(result.output, sequence, head),
                  heads.sums(sums, sequence, head), {}, settings.each, scratch);
  });
  return result;
}

template <typename T>
variable_list backwardLoop(const at::Tensor& gradOutput, const Packed& t, const at::Tensor& sums,
                           const PackedSettings& settings) {
  const PackedHeads<T> heads(t, settings.heads, settings.each);
  const auto gradQuery = at::empty({t.query.size(0), t.query.size(1)}, t.query.options());
  const auto gradKey = at::empty({t.key.size(0), t.key.size(1)}, t.key.options());
  const auto gradValue = at::empty_like(gradKey);
  heads.clearWithoutKeys(gradQuery);
  heads.clearWithoutQueries(gradKey);
  heads.clearWithoutQueries(gradValue);
  const T* const sumsData = sums.const_data_ptr<T>();
  heads.forEach([&](int64_t sequence, int64_t head, T* scratch) {
    attendHeadBackward<T>(heads.head(sequence, head), heads.sums(sumsData, sequence, head),
                          heads.queryRows(gradOutput, sequence, head), {},
                          heads.queryRowsOut(gradQuery, sequence, head),
                          heads.keyRowsOut(gradKey, sequence, head),
                          heads.keyRowsOut(gradValue, sequence, head), settings.each, scratch);
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

PackedSettings settingsOf(const Packed& t, int64_t heads, bool causal, double dropoutP,
                          uint64_t seed) {
  const auto width = t.query.size(1) / heads;
  return {heads, {width, width, causal, dropoutP, seed}};
}

PackedAttentionResult forwardPass(const Packed& given, const PackedSettings& settings) {
  const auto t = preparedTensors(given);
  auto result = t.query.scalar_type() == at::kDouble ? forwardLoop<double>(t, settings)
                                                     : forwardLoop<float>(t, settings);
  result.output = result.output.to(given.query.scalar_type());
  return result;
}

variable_list backwardPass(const at::Tensor& gradOutput, const Packed& given,
                           const at::Tensor& sums, const PackedSettings& settings) {
  const auto t = preparedTensors(given);
  const auto upstream = prepared(gradOutput);
  auto result = t.query.scalar_type() == at::kDouble
                    ? backwardLoop<double>(upstream, t, sums, settings)
                    : backwardLoop<float>(upstream, t, sums, settings);
  for (auto& gradient : result) gradient = gradient.to(given.query.scalar_type());
  return result;
}

/// The formula in plain ops, sequence by sequence.
at::Tensor composed(const Packed& t, const PackedSettings& settings) {
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
      return widened(rows.reshape({length, heads, settings.each.width}).transpose(0, 1));
    };
    const auto k = split(t.key.narrow(0, keyOffsets[b], keys), keys);
    const auto v = split(t.value.narrow(0, keyOffsets[b], keys), keys);
    auto scores = at::matmul(split(q, queries), k.transpose(1, 2)) * settings.each.scoreScale();
    if (settings.each.causal) {
      const auto place = at::arange(keys, at::TensorOptions(t.query.device()));
      scores =
          scores.masked_fill(place.gt(place.unsqueeze(1)), -std::numeric_limits<float>::infinity());
    }
    auto weights = at::softmax(scores, /*dim=*/-1);
    if (settings.each.dropoutP > 0.0) {
      // Rows of the mask are (query row, head); this sequence's are [queries, heads, keys].
      const auto kept =
          keptMask(at::empty({(first + queries) * heads, keys}, t.query.options()),
                   settings.each.dropoutP, {static_cast<int64_t>(settings.each.seed), {}})
              .narrow(0, first * heads, queries * heads)
              .view({queries, heads, keys})
              .transpose(0, 1);
      weights = applyKept(weights, kept, settings.each.dropoutP);
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
                            const PackedSettings& settings) {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    const auto result = forwardPass({query, key, value, queryOffsets, keyOffsets}, settings);
    context->save_for_backward({query, key, value, queryOffsets, keyOffsets, result.sums});
    context->saved_data["heads"] = settings.heads;
    context->saved_data["causal"] = settings.each.causal;
    context->saved_data["dropout_p"] = settings.each.dropoutP;
    context->saved_data["seed"] = static_cast<int64_t>(settings.each.seed);
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
