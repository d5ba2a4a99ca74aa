// Token vectors with positions.
//
// Purpose: the first layer of a Transformer (paper, sections 3.4, 3.5 and 5.4): the rows of the
//   embedding times a scale, plus the position's row, with dropout, in one pass instead of four.
// Shapes:  weight [V, D], ids [...] int64 or int32, table [P, D] and positions, of the shape of
//   ids, both or neither -> output [..., D] in the dtype of weight. The table may be float32 beside
//   a weight of a half type.
// Formula: y = (weight[ids] * scale + table[positions]) * keep / (1 - p), keep ~ Bernoulli(1 - p).
// Backward: g = dy * keep / (1 - p),   dweight[id] = scale * sum of its rows of g, a dense tensor
//   or, with `sparse_grad`, a sparse one with an entry for each row that was looked up;
//   dtable[position] = sum of its rows of g.
// Saved:   ids and positions, the seed of the mask; the tables for a second derivative.
// Hazards: an id out of range would read outside the table. On the CPU it is an error. On a GPU,
//   where a check would have to synchronize, its row is NaN (see device/embed.h).

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/embedding_sparse_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/device/dropout.h"
#include "core/device/embed.h"
#include "core/ops/ops.h"
#include "core/support/autograd.h"
#include "core/support/check.h"
#include "core/support/optional.h"
#include "core/support/precision.h"

namespace torchformer::core {

namespace {

using torch::autograd::AutogradContext;

constexpr auto embedName = "embed";

/// Arguments of one call; undefined if absent.
struct Lookup {
  at::Tensor weight, ids, table, positions;
  double scale;
  double dropoutP;
};

void checkIds(const char* name, const at::Tensor& ids, const at::Tensor& weight) {
  TF_CHECK(ERR_DTYPE,
           ids.layout() == at::kStrided &&
               (ids.scalar_type() == at::kLong || ids.scalar_type() == at::kInt),
           embedName, ": ", name, " must be dense int64 or int32 numbers, got ", ids.scalar_type());
  TF_CHECK(ERR_DEVICE, ids.device() == weight.device(), embedName, ": ", name,
           " must be on the device of weight (", weight.device(), "), got ", ids.device());
}

/// @throws ERR_INDEX on the CPU for a number that is not a row of its table.
void checkRange(const char* name, const at::Tensor& ids, int64_t rows) {
  if (!ids.is_cpu()) return;
  const auto numbers = ids.to(at::kLong).contiguous();
  const auto* data = numbers.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    TF_CHECK(ERR_INDEX, data[i] >= 0 && data[i] < rows, embedName, ": ", name,
             " must be from 0 to ", rows - 1, ", got ", data[i], " at place ", i);
  }
}

void checkArguments(const Lookup& lookup, const OptionalGenerator& generator) {
  const auto& [weight, ids, table, positions, scale, dropoutP] = lookup;
  checkFloating(embedName, "weight", weight);
  TF_CHECK(ERR_SHAPE, weight.dim() == 2, embedName, ": weight must be [V, D], got ",
           weight.sizes());
  checkIds("ids", ids, weight);
  TF_CHECK(ERR_ARGUMENT, table.defined() == positions.defined(), embedName,
           ": table and positions belong together; give both or neither");
  TF_CHECK(ERR_ARGUMENT, std::isfinite(scale), embedName, ": scale must be finite, got ", scale);
  checkProbability(embedName, "dropout_p", dropoutP);
  checkGenerator(embedName, generator);
  if (table.defined()) {
    checkParameter(embedName, "table", table, "weight", weight);
    TF_CHECK(ERR_SHAPE, table.dim() == 2 && table.size(1) == weight.size(1), embedName,
             ": table must be [P, ", weight.size(1), "] for a weight of ", weight.sizes(), ", got ",
             table.sizes());
    checkIds("positions", positions, weight);
    TF_CHECK(ERR_SHAPE, positions.sizes() == ids.sizes(), embedName,
             ": positions must have the shape of ids, ", ids.sizes(), ", got ", positions.sizes());
    checkRange("positions", positions, table.size(0));
  }
  checkRange("ids", ids, weight.size(0));
}

std::vector<int64_t> outputSizes(const Lookup& lookup) {
  auto sizes = lookup.ids.sizes().vec();
  sizes.push_back(lookup.weight.size(1));
  return sizes;
}

/// Rows of a table; NaN for row numbers out of range, which are possible only on a GPU.
at::Tensor composedRows(const at::Tensor& table, const at::Tensor& ids, bool sparseGradient) {
  if (ids.is_cpu()) return at::embedding(table, ids, /*padding_idx=*/-1, false, sparseGradient);
  const auto inside = ids.clamp(0, table.size(0) - 1);
  return at::embedding(table, inside, /*padding_idx=*/-1, false, sparseGradient)
      .masked_fill(inside.ne(ids).unsqueeze(-1), std::numeric_limits<double>::quiet_NaN());
}

/// The formula in plain ops. `kept` undefined: no dropout.
at::Tensor composed(const Lookup& lookup, bool sparseGradient, const at::Tensor& kept) {
  const auto& weight = lookup.weight;
  auto rows = widened(composedRows(weight, lookup.ids, sparseGradient)).mul(lookup.scale);
  if (lookup.table.defined()) {
    rows = rows.add(composedRows(lookup.table, lookup.positions, /*sparseGradient=*/false));
  }
  return (kept.defined() ? applyKept(rows, kept, lookup.dropoutP) : rows).to(weight.scalar_type());
}

at::Tensor composedWithSeed(const Lookup& lookup, bool sparseGradient, const Seed& seed) {
  if (lookup.dropoutP == 0.0) return composed(lookup, sparseGradient, {});
  const auto like = lookup.weight.new_empty(outputSizes(lookup));
  return composed(lookup, sparseGradient, keptMask(like, lookup.dropoutP, seed));
}

EmbedRows rowsOf(const Lookup& lookup, const Seed& seed) {
  const auto flat = [](const at::Tensor& ids) {
    return ids.defined() ? ids.to(at::kLong).reshape({-1}).contiguous() : ids;
  };
  return {flat(lookup.ids), flat(lookup.positions), lookup.scale, lookup.dropoutP, seed};
}

at::Tensor forwardPass(const Lookup& lookup, const Seed& seed) {
  const auto table = lookup.table.defined() ? widened(lookup.table) : at::Tensor();
  return embedForward(lookup.weight, table, rowsOf(lookup, seed)).view(outputSizes(lookup));
}

struct EmbedFunction : torch::autograd::Function<EmbedFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& weight,
                            const OptionalTensor& table, const at::Tensor& ids,
                            const OptionalTensor& positions, double scale, double dropoutP,
                            bool sparseGradient, const OptionalGenerator& generator) {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    const Lookup lookup{weight, ids, orNone(table), orNone(positions), scale, dropoutP};
    const auto seed = drawSeed(dropoutP, generator, weight);
    context->save_for_backward({weight, lookup.table, ids, lookup.positions});
    context->saved_data["scale"] = scale;
    context->saved_data["dropout_p"] = dropoutP;
    context->saved_data["sparse"] = sparseGradient;
    saveSeed(context, seed);
    context->set_materialize_grads(false);
    return forwardPass(lookup, seed);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list result(8);
    if (!gradients[0].defined()) return result;
    const auto saved = context->get_saved_variables();
    const Lookup lookup{saved[0],
                        saved[2],
                        saved[1],
                        saved[3],
                        context->saved_data["scale"].toDouble(),
                        context->saved_data["dropout_p"].toDouble()};
    const bool sparse = context->saved_data["sparse"].toBool();
    const auto seed = savedSeed(context);
    if (c10::GradMode::is_enabled()) {
      auto found = differentiableGradients(
          [&](const variable_list& inputs) -> variable_list {
            auto again = lookup;
            again.weight = inputs[0];
            again.table = inputs[1];
            return {composedWithSeed(again, sparse, seed)};
          },
          {lookup.weight, lookup.table}, gradients);
      for (size_t i = 0; i < found.size(); ++i) result[i] = std::move(found[i]);
      return result;
    }
    auto rows = rowsOf(lookup, seed);
    const auto width = lookup.weight.size(1);
    const auto vocabulary = lookup.weight.size(0);
    const auto places = lookup.table.defined() ? lookup.table.size(0) : 0;
    const auto upstream = gradients[0].reshape({-1, width});
    // On a GPU, row numbers out of range, whose gradients are zero, are clamped to the nearest row.
    const auto inside = [](const at::Tensor& ids, int64_t count) {
      return ids.is_cpu() ? ids : ids.clamp(0, count - 1);
    };
    if (context->needs_input_grad(0)) {
      const auto slopes = embedBackward(upstream, rows, vocabulary, places);
      const auto ids = inside(rows.ids, vocabulary);
      result[0] = sparse ? at::embedding_sparse_backward(slopes, ids, vocabulary, -1, false)
                         : at::embedding_dense_backward(slopes, ids, vocabulary, -1, false);
    }
    // An absent table has no index among the edges that needs_input_grad counts.
    if (lookup.table.defined() && context->needs_input_grad(1)) {
      rows.scale = 1.0;
      const auto slopes = embedBackward(upstream, rows, vocabulary, places);
      result[1] = narrowed(
          at::embedding_dense_backward(slopes, inside(rows.positions, places), places, -1, false),
          lookup.table);
    }
    return result;
  }
};

at::Tensor embed(const at::Tensor& weight, const at::Tensor& ids, double scale,
                 const OptionalTensor& table, const OptionalTensor& positions, double dropoutP,
                 bool sparseGradient, OptionalGenerator generator) {
  const Lookup lookup{weight, ids, orNone(table), orNone(positions), scale, dropoutP};
  checkArguments(lookup, generator);
  // Already differentiable.
  if (!hasEmbedKernels(weight)) {
    return composedWithSeed(lookup, sparseGradient, drawSeed(dropoutP, generator, weight));
  }
  if (mustRecord({weight, lookup.table})) {
    return EmbedFunction::apply(weight, table, ids, positions, scale, dropoutP, sparseGradient,
                                generator);
  }
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  return forwardPass(lookup, drawSeed(dropoutP, generator, weight));
}

at::Tensor embedReference(const at::Tensor& weight, const at::Tensor& ids, double scale,
                          const OptionalTensor& table, const OptionalTensor& positions,
                          double dropoutP, bool sparseGradient, OptionalGenerator generator) {
  const Lookup lookup{weight, ids, orNone(table), orNone(positions), scale, dropoutP};
  checkArguments(lookup, generator);
  return composedWithSeed(lookup, sparseGradient, drawSeed(dropoutP, generator, weight));
}

}  // namespace

void registerEmbed(torch::Library& library) {
  defineOp(library, "embed",
           "(Tensor weight, Tensor ids, float scale, Tensor? table=None, Tensor? positions=None, "
           "float dropout_p=0.0, *, bool sparse_grad=False, Generator? generator=None) -> Tensor",
           TORCH_FN(embed), TORCH_FN(embedReference));
}

}  // namespace torchformer::core
