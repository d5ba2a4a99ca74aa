// Scaled dot-product attention.
//
// Purpose: each query gets the mean of the values, weighted by how well it matches their keys.
// Shapes:  query [B, (H,) Sq, Dk], key [B, (H,) Sk, Dk], value [B, (H,) Sk, Dv],
//   mask bool, true = may attend, of the rank of the scores [B, (H,) Sq, Sk] and 1 or their size in
//   each dimension -> output [B, (H,) Sq, Dv], weights [B, (H,) Sq, Sk] (undefined if not asked).
// Formula: S = Q K^T / sqrt(Dk),  P = softmax(S where the mask allows),  O = drop(P) V.
// Backward, with D = drop(P):
//   dV = D^T dO,  dP = undrop(dO V^T + dweights),  dS = P * (dP - sum(dP * P)),
//   dQ = dS K / sqrt(Dk),  dK = dS^T Q / sqrt(Dk).
// Saved:   query, key, value, mask; on the CPU two numbers for each row of P and the seed of the
//   dropout mask, from which P is computed again (device/attention_cpu.cc); elsewhere P, and one
//   byte per weight if there is dropout.
// Hazards:
//   - A row that may attend to nothing must not become 0 / 0. Blocked scores are set to the lowest
//     finite number: beside any allowed score their weight is exactly 0, and when all are blocked
//     the softmax is uniform over the Sk keys ("uniform"). Such a row does not depend on the
//     scores, so dS must be zeroed where blocked. "zero" clears the weights of such rows, and
//     with P = 0 the formula for dS gives 0 automatically.
//   - Half types are computed in float32 and rounded at the end, because scores beyond float16's
//     65504 are common. The gradients pass through the same conversion.
//   - The returned weights are those after dropout, and requesting them does not change any bit of
//     the output.
//   - Without dropout, the weights that the caller received are P, and saved: PyTorch's version
//     counter then turns a change to them into an error in backward, on all devices.

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>

#include "core/device/attention_cpu.h"
#include "core/device/dropout.h"
#include "core/ops/ops.h"
#include "core/support/autograd.h"
#include "core/support/check.h"
#include "core/support/optional.h"
#include "core/support/precision.h"

namespace torchformer::core {

namespace {

using torch::autograd::AutogradContext;

/// The result of a query that may not attend to any key.
enum class EmptyRows : int64_t { uniform, zero };

EmptyRows parseEmptyRows(std::string_view name) {
  TF_CHECK(ERR_ARGUMENT, name == "uniform" || name == "zero",
           "attention: empty_rows must be 'uniform' or 'zero', got '", std::string(name), "'");
  return name == "zero" ? EmptyRows::zero : EmptyRows::uniform;
}

void checkMask(const at::Tensor& mask, const at::Tensor& query, const at::Tensor& key) {
  constexpr auto op = "attention";
  TF_CHECK(ERR_ARGUMENT, mask.layout() == at::kStrided && !mask.is_nested(), op,
           ": mask must be a dense tensor");
  TF_CHECK(ERR_DTYPE, mask.scalar_type() == at::kBool, op,
           ": mask must be bool (true = may attend), got ", mask.scalar_type());
  TF_CHECK(ERR_DEVICE, mask.device() == query.device(), op,
           ": mask must be on the device of query (", query.device(), "), got ", mask.device());
  auto scores = query.sizes().vec();
  scores.back() = key.size(-2);
  bool fits = mask.dim() == query.dim();
  for (int64_t i = 0; fits && i < mask.dim(); ++i) {
    fits = mask.size(i) == 1 || mask.size(i) == scores[static_cast<size_t>(i)];
  }
  TF_CHECK(ERR_SHAPE, fits, op, ": a mask of ", mask.sizes(), " does not fit scores of ",
           at::IntArrayRef(scores), ": it needs as many dimensions, each 1 or of the same size");
}

void checkArguments(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const at::Tensor& mask, double dropoutP, const OptionalGenerator& generator) {
  constexpr auto op = "attention";
  checkFloating(op, "query", query);
  checkMatches(op, "key", key, "query", query);
  checkMatches(op, "value", value, "query", query);
  const auto rank = query.dim();
  TF_CHECK(ERR_SHAPE, rank == 3 || rank == 4, op,
           ": query must be [B, Sq, Dk] or [B, H, Sq, Dk], got ", query.sizes());
  TF_CHECK(ERR_SHAPE, query.size(-1) >= 1, op, ": query must have at least one feature, got ",
           query.sizes());
  // Leading dimensions must agree exactly: broadcasting a batch of 1 here hides a forgotten repeat.
  const auto leading = query.sizes().slice(0, static_cast<size_t>(rank - 2));
  const auto leadingOf = [&](const at::Tensor& tensor) {
    return tensor.sizes().slice(0, static_cast<size_t>(rank - 2));
  };
  TF_CHECK(ERR_SHAPE,
           key.dim() == rank && leadingOf(key) == leading && key.size(-1) == query.size(-1), op,
           ": key must be like query ", query.sizes(), " in all but the length, got ", key.sizes());
  TF_CHECK(ERR_SHAPE,
           value.dim() == rank && leadingOf(value) == leading && value.size(-2) == key.size(-2), op,
           ": value must be like key ", key.sizes(), " in all but the features, got ",
           value.sizes());
  if (mask.defined()) checkMask(mask, query, key);
  checkProbability(op, "dropout_p", dropoutP);
  checkGenerator(op, generator);
}

double lowestOf(at::ScalarType dtype) {
  return dtype == at::kDouble ? std::numeric_limits<double>::lowest()
                              : static_cast<double>(std::numeric_limits<float>::lowest());
}

double scoreScale(const at::Tensor& query) {
  return 1.0 / std::sqrt(static_cast<double>(query.size(-1)));
}

/// [B, (H,) S, D] -> [B * H, S, D]; copies only if the strides require it.
at::Tensor batched(const at::Tensor& tensor) { return tensor.flatten(0, -3); }

at::Tensor transposed(const at::Tensor& tensor) { return tensor.transpose(-2, -1); }

/// True for queries that may not attend to any key, [B|1, (H|1,) Sq|1, 1].
at::Tensor emptyRowsOf(const at::Tensor& mask) {
  return mask.any(/*dim=*/-1, /*keepdim=*/true).logical_not_();
}

/// scale * a b for batches of matrices, with the scale applied before any rounding.
at::Tensor scaledBmm(const at::Tensor& a, const at::Tensor& b, double scale) {
  return at::empty({a.size(0), a.size(1), b.size(2)}, a.options())
      .baddbmm_(a, b, /*beta=*/0, /*alpha=*/scale);
}

at::Tensor softmaxWeights(const at::Tensor& query, const at::Tensor& key, const at::Tensor& mask,
                          EmptyRows emptyRows) {
  auto sizes = query.sizes().vec();
  sizes.back() = key.size(-2);
  const auto scores =
      scaledBmm(batched(query), transposed(batched(key)), scoreScale(query)).view(sizes);
  if (mask.defined()) scores.masked_fill_(mask.logical_not(), lowestOf(scores.scalar_type()));
  const auto weights = at::_softmax(scores, /*dim=*/-1, /*half_to_float=*/false);
  if (mask.defined() && emptyRows == EmptyRows::zero) weights.masked_fill_(emptyRowsOf(mask), 0);
  return weights;
}

struct AttentionResult {
  at::Tensor output;
  at::Tensor weights;      // P, [B, (H,) Sq, Sk]
  at::Tensor kept;         // bool like P; undefined without dropout
  at::Tensor usedWeights;  // the factor of the values: P itself without dropout
  // On the CPU; `weights` and `usedWeights` are then undefined unless needed.
  at::Tensor sums;
  uint64_t seed = 0;
};

/// Whether the loops of the CPU are used. They take no tensor without elements.
bool runsInLoops(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  return query.is_cpu() && query.numel() > 0 && key.numel() > 0 && value.numel() > 0;
}

AttentionResult forwardInLoops(const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const at::Tensor& mask, double dropoutP,
                               EmptyRows emptyRows, bool needWeights,
                               const OptionalGenerator& generator) {
  AttentionResult result;
  const auto seed = drawSeed(dropoutP, generator, query);
  result.seed = seedOf(seed.number, seed.optionalSlot());
  auto found = attentionOnCpu(
      {query, key, value, mask, dropoutP, result.seed, emptyRows == EmptyRows::zero}, needWeights);
  result.output = std::move(found.output);
  result.sums = std::move(found.sums);
  result.usedWeights = std::move(found.weights);
  if (dropoutP == 0.0) result.weights = result.usedWeights;
  return result;
}

AttentionResult forwardPass(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const at::Tensor& mask, double dropoutP, EmptyRows emptyRows,
                            bool needWeights, const OptionalGenerator& generator) {
  if (runsInLoops(query, key, value)) {
    return forwardInLoops(query, key, value, mask, dropoutP, emptyRows, needWeights, generator);
  }
  AttentionResult result;
  result.weights = softmaxWeights(query, key, mask, emptyRows);
  result.usedWeights = result.weights;
  if (dropoutP > 0.0) {
    result.kept = keptMask(result.weights, dropoutP, drawSeed(dropoutP, generator, query));
    result.usedWeights = applyKept(result.weights, result.kept, dropoutP);
  }
  auto sizes = query.sizes().vec();
  sizes.back() = value.size(-1);
  result.output = at::bmm(batched(result.usedWeights), batched(value)).view(sizes);
  return result;
}

struct AttentionWanted {
  bool query, key, value;
};

struct Saved {
  at::Tensor query, key, value, mask, weights, kept, sums;
  uint64_t seed;
};

/// Either gradient may be undefined, but not both.
variable_list backwardPass(const at::Tensor& gradOutput, const at::Tensor& gradWeights,
                           const Saved& saved, double dropoutP, EmptyRows emptyRows,
                           const AttentionWanted& wanted) {
  if (saved.sums.defined()) {
    const auto found = attentionOnCpuBackward(gradOutput, gradWeights,
                                              {saved.query, saved.key, saved.value, saved.mask,
                                               dropoutP, saved.seed, emptyRows == EmptyRows::zero},
                                              saved.sums);
    return {found.query, found.key, found.value};
  }
  variable_list result(3);
  const auto upstream = gradOutput.defined() ? batched(gradOutput) : at::Tensor();
  if (wanted.value && upstream.defined()) {
    const auto used =
        saved.kept.defined() ? applyKept(saved.weights, saved.kept, dropoutP) : saved.weights;
    result[2] = at::bmm(transposed(batched(used)), upstream).view(saved.value.sizes());
  }
  if (!wanted.query && !wanted.key) return result;

  at::Tensor gradient = gradWeights;
  if (upstream.defined()) {
    gradient = at::bmm(upstream, transposed(batched(saved.value))).view(saved.weights.sizes());
    if (gradWeights.defined()) gradient.add_(gradWeights);
  }
  if (saved.kept.defined()) gradient = applyKept(gradient, saved.kept, dropoutP);
  const auto gradScores =
      at::_softmax_backward_data(gradient, saved.weights, /*dim=*/-1, saved.weights.scalar_type());
  if (saved.mask.defined()) gradScores.masked_fill_(saved.mask.logical_not(), 0);

  const auto scores = batched(gradScores);
  const double scale = scoreScale(saved.query);
  if (wanted.query) {
    result[0] = scaledBmm(scores, batched(saved.key), scale).view(saved.query.sizes());
  }
  if (wanted.key) {
    result[1] = scaledBmm(transposed(scores), batched(saved.query), scale).view(saved.key.sizes());
  }
  return result;
}

/// The mask of dropout, [B, (H,) Sq, Sk]; undefined without dropout.
at::Tensor keptWeights(const at::Tensor& query, const at::Tensor& key, double dropoutP,
                       const Seed& seed) {
  if (dropoutP == 0.0) return {};
  auto sizes = query.sizes().vec();
  sizes.back() = key.size(-2);
  return keptMask(at::empty(sizes, query.options()), dropoutP, seed);
}

/// The formula in plain ops: output and weights. `kept` undefined: no dropout.
variable_list composed(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                       const at::Tensor& mask, const at::Tensor& kept, double dropoutP,
                       EmptyRows emptyRows) {
  const auto dtype = query.scalar_type();
  auto scores = at::matmul(widened(query), transposed(widened(key))) * scoreScale(query);
  if (mask.defined()) {
    scores = scores.masked_fill(mask.logical_not(), lowestOf(scores.scalar_type()));
  }
  auto weights = at::softmax(scores, /*dim=*/-1);
  if (mask.defined() && emptyRows == EmptyRows::zero) {
    weights = weights.masked_fill(emptyRowsOf(mask), 0);
  }
  if (kept.defined()) weights = applyKept(weights, kept, dropoutP);
  return {at::matmul(weights, widened(value)).to(dtype), weights.to(dtype)};
}

/// Whether libtorch's kernels are used: on a GPU if no weights are requested. They keep no scores
/// and are differentiable; their dropout draws from the GPU's generator. float64 has no such
/// kernel.
bool runsFused(const at::Tensor& query, bool needWeights) {
  return query.is_cuda() && !needWeights && query.scalar_type() != at::kDouble;
}

at::Tensor fused(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                 const at::Tensor& mask, double dropoutP, EmptyRows emptyRows) {
  // With heads, as the kernels require.
  const bool hasHeads = query.dim() == 4;
  const auto headed = [&](const at::Tensor& tensor) {
    return hasHeads ? tensor : tensor.unsqueeze(1);
  };
  if (!mask.defined()) {
    const auto output = at::scaled_dot_product_attention(headed(query), headed(key), headed(value),
                                                         /*attn_mask=*/{}, dropoutP);
    return hasHeads ? output : output.squeeze(1);
  }
  // A row with no allowed key attends to all keys here, and gets its correct result afterwards.
  const auto empty = emptyRowsOf(mask);
  const auto output = at::scaled_dot_product_attention(headed(query), headed(key), headed(value),
                                                       headed(mask.logical_or(empty)), dropoutP);
  const auto result = hasHeads ? output : output.squeeze(1);
  if (emptyRows == EmptyRows::zero) return result.masked_fill(empty, 0);
  return at::where(empty, value.mean({-2}, /*keepdim=*/true), result);
}

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  /// Returns {output} or {output, weights}.
  static variable_list forward(AutogradContext* context, const at::Tensor& query,
                               const at::Tensor& key, const at::Tensor& value,
                               const OptionalTensor& mask, double dropoutP, EmptyRows emptyRows,
                               bool needWeights, const OptionalGenerator& generator) {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    const auto maskOrNone = orNone(mask);
    const auto result =
        forwardPass(query, key, value, maskOrNone, dropoutP, emptyRows, needWeights, generator);
    context->save_for_backward(
        {query, key, value, maskOrNone, result.weights, result.kept, result.sums});
    context->saved_data["seed"] = static_cast<int64_t>(result.seed);
    context->saved_data["dropout_p"] = dropoutP;
    context->saved_data["empty_rows"] = static_cast<int64_t>(emptyRows);
    // Otherwise a caller who ignores the weights pays for a zero gradient of their size.
    context->set_materialize_grads(false);
    if (needWeights) return {result.output, result.usedWeights};
    return {result.output};
  }

  static at::Tensor keptOf(const Saved& saved, double dropoutP) {
    if (saved.kept.defined()) return saved.kept;
    return keptWeights(saved.query, saved.key, dropoutP, {static_cast<int64_t>(saved.seed), {}});
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list result(8);
    const auto gradWeights = gradients.size() > 1 ? gradients[1] : at::Tensor();
    if (!gradients[0].defined() && !gradWeights.defined()) return result;
    const auto list = context->get_saved_variables();
    const Saved saved{
        list[0], list[1], list[2], list[3],
        list[4], list[5], list[6], static_cast<uint64_t>(context->saved_data["seed"].toInt())};
    const double dropoutP = context->saved_data["dropout_p"].toDouble();
    const auto emptyRows = static_cast<EmptyRows>(context->saved_data["empty_rows"].toInt());
    auto found = c10::GradMode::is_enabled()
                     ? differentiableGradients(
                           [&](const variable_list& inputs) {
                             return composed(inputs[0], inputs[1], inputs[2], saved.mask,
                                             keptOf(saved, dropoutP), dropoutP, emptyRows);
                           },
                           {saved.query, saved.key, saved.value}, {gradients[0], gradWeights})
                     : backwardPass(gradients[0], gradWeights, saved, dropoutP, emptyRows,
                                    {context->needs_input_grad(0), context->needs_input_grad(1),
                                     context->needs_input_grad(2)});
    for (size_t i = 0; i < found.size(); ++i) result[i] = std::move(found[i]);
    return result;
  }
};

using Pair = std::tuple<at::Tensor, at::Tensor>;

/// Output and weights, if any, in the original half type.
Pair narrowedPair(const Pair& pair, at::ScalarType dtype) {
  const auto& [output, weights] = pair;
  return {output.to(dtype), weights.defined() ? weights.to(dtype) : weights};
}

Pair attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
               const OptionalTensor& mask, double dropoutP, std::string_view emptyRowsName,
               bool needWeights, OptionalGenerator generator) {
  const auto maskOrNone = orNone(mask);
  const auto emptyRows = parseEmptyRows(emptyRowsName);
  checkArguments(query, key, value, maskOrNone, dropoutP, generator);
  if (runsFused(query, needWeights)) {
    return {fused(query, key, value, maskOrNone, dropoutP, emptyRows), at::Tensor()};
  }
  if (isHalf(query)) {
    return narrowedPair(attention(widened(query), widened(key), widened(value), mask, dropoutP,
                                  emptyRowsName, needWeights, std::move(generator)),
                        query.scalar_type());
  }
  if (mustRecord({query, key, value})) {
    // Heads split by a transpose must be made contiguous for bmm. With the copy here, where
    // autograd records it, the copy is saved, and backward does not need to make it again. The
    // loops need no copy.
    const bool asGiven = runsInLoops(query, key, value);
    const auto forBmm = [&](const at::Tensor& t) { return asGiven ? t : t.contiguous(); };
    const auto outputs = AttentionFunction::apply(forBmm(query), forBmm(key), forBmm(value), mask,
                                                  dropoutP, emptyRows, needWeights, generator);
    return {outputs[0], needWeights ? outputs[1] : at::Tensor()};
  }
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  auto result =
      forwardPass(query, key, value, maskOrNone, dropoutP, emptyRows, needWeights, generator);
  return {result.output, needWeights ? result.usedWeights : at::Tensor()};
}

Pair attentionReference(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        const OptionalTensor& mask, double dropoutP, std::string_view emptyRowsName,
                        bool needWeights, OptionalGenerator generator) {
  const auto maskOrNone = orNone(mask);
  const auto emptyRows = parseEmptyRows(emptyRowsName);
  checkArguments(query, key, value, maskOrNone, dropoutP, generator);
  at::Tensor kept;
  if (dropoutP > 0.0) {
    kept = keptWeights(query, key, dropoutP, drawSeed(dropoutP, generator, query));
  }
  auto outputs = composed(query, key, value, maskOrNone, kept, dropoutP, emptyRows);
  return {outputs[0], needWeights ? outputs[1] : at::Tensor()};
}

}  // namespace

void registerAttention(torch::Library& library) {
  defineOp(library, "attention",
           "(Tensor query, Tensor key, Tensor value, Tensor? mask=None, float dropout_p=0.0, *, "
           "str empty_rows=\"uniform\", bool need_weights=False, Generator? generator=None) -> "
           "(Tensor output, Tensor weights)",
           TORCH_FN(attention), TORCH_FN(attentionReference));
}

}  // namespace torchformer::core
