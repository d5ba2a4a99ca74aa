#include "core/decode/model_passes.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <c10/util/FunctionRef.h>

#include <algorithm>
#include <cmath>

#include "core/loops/attention.h"
#include "core/loops/cached_attention.h"
#include "core/loops/for_each_row.h"
#include "core/loops/gated.h"

namespace torchformer::core {

namespace {

enum Slot { residual, normed, projected, attended, inner, gate, logits, weights };

/// Work below which a second thread costs more than it gains, in multiplications.
constexpr int64_t workForThreads = 32'768;

}  // namespace

float* Workspace::reserve(int slot, int64_t count) {
  if (slots_.size() <= static_cast<size_t>(slot)) slots_.resize(static_cast<size_t>(slot) + 1);
  auto& memory = slots_[static_cast<size_t>(slot)];
  if (memory.size() < static_cast<size_t>(count)) memory.resize(static_cast<size_t>(count));
  return memory.data();
}

int32_t CellPool::take() {
  if (free_.empty()) {
    const auto first = static_cast<int32_t>(chunks_.size()) * chunk;
    chunks_.emplace_back(new float[static_cast<size_t>(layers_ * chunk * 2 * width_)]);
    for (int32_t i = chunk; i > 0; --i) free_.push_back(first + i - 1);
  }
  const auto cell = free_.back();
  free_.pop_back();
  return cell;
}

void ModelPasses::embed(const PreparedEmbedding& embedding, int64_t token, int64_t position,
                        float* x) const {
  const auto width = model_->width;
  const auto factor = static_cast<float>(std::sqrt(static_cast<double>(width)));
  const auto* row = embedding.table.const_data_ptr<float>() + token * width;
  if (!embedding.positions.defined()) {
    for (int64_t i = 0; i < width; ++i) x[i] = row[i] * factor;
    return;
  }
  const auto* added = embedding.positions.const_data_ptr<float>() + position * width;
  for (int64_t i = 0; i < width; ++i) x[i] = row[i] * factor + added[i];
}

/// `compute` adds a sublayer of its input to x; the norm is before it or after the sum.
void ModelPasses::sublayer(const PreparedNorm& norm, int64_t rows, float* x,
                           c10::function_ref<void(const float* input)> compute) {
  if (model_->form.postNorm) {
    compute(x);
    norm.apply(x, rows, x);
    return;
  }
  auto* const input = workspace_.reserve(normed, rows * model_->width);
  norm.apply(x, rows, input);
  compute(input);
}

void ModelPasses::feedForward(const PreparedFeedForward& layer, const float* input, int64_t rows,
                              float* x) {
  const auto width = layer.first.outFeatures();
  auto* const hidden = workspace_.reserve(inner, rows * width);
  const auto activation = model_->form.activation;
  layer.first.apply(input, rows, hidden, width,
                    activation == Activation::relu ? Then::relu : Then::store);
  if (activation == Activation::gelu) {
    forEachRow({rows, width}, [&](int64_t row) {
      auto values =
          at::from_blob(hidden + row * width, {width}, at::TensorOptions().dtype(at::kFloat));
      at::gelu_(values);
    });
  } else if (activation == Activation::swiglu) {
    auto* const gated = workspace_.reserve(gate, rows * width);
    layer.gate.apply(input, rows, gated, width, Then::store);
    forEachRow({rows, width},
               [&](int64_t row) { siluTimes(hidden + row * width, gated + row * width, width); });
  }
  layer.second.apply(hidden, rows, x, model_->width, Then::add);
}

std::vector<EncodedSource> ModelPasses::encode(
    const std::vector<const std::vector<int64_t>*>& sources) {
  const auto& model = *model_;
  const auto width = model.width;
  std::vector<int64_t> starts{0};
  for (const auto* source : sources) {
    starts.push_back(starts.back() + static_cast<int64_t>(source->size()));
  }
  const auto rows = starts.back();
  const auto count = static_cast<int64_t>(sources.size());
  const auto heads = model.form.heads;
  auto* const x = workspace_.reserve(residual, rows * width);
  auto* const joined = workspace_.reserve(projected, rows * 3 * width);
  auto* const heard = workspace_.reserve(attended, rows * width);
  for (int64_t i = 0; i < count; ++i) {
    const auto& source = *sources[static_cast<size_t>(i)];
    for (int64_t position = 0; position < std::ssize(source); ++position) {
      embed(model.source, source[static_cast<size_t>(position)], position,
            x + (starts[static_cast<size_t>(i)] + position) * width);
    }
  }
  const AttentionSettings settings{model.headSize, model.headSize, /*causal=*/false,
                                   /*dropoutP=*/0.0, /*seed=*/0};
  const auto attendSource = [&](int64_t index, int64_t head) {
    static thread_local std::vector<float> memory;
    const auto first = starts[static_cast<size_t>(index)];
    const auto length = starts[static_cast<size_t>(index) + 1] - first;
    const auto size = attentionScratchSize<float>(length, length, settings);
    // Room to begin at a multiple of 64 bytes.
    memory.resize(static_cast<size_t>(size + 2 * length + 16));
    auto* const aligned =
        reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
    const auto part = [&](int64_t which) -> HeadRows<const float> {
      return {joined + first * 3 * width + which * width + head * model.headSize, length,
              3 * width};
    };
    attendHead<float>({part(0), part(1), part(2), {}, 0, 1},
                      {heard + first * width + head * model.headSize, length, width},
                      {aligned + size, aligned + size + length}, {}, settings, aligned);
  };
  for (const auto& layer : model.encoder) {
    sublayer(layer.norms[0], rows, x, [&](const float* input) {
      layer.queryKeyValue.apply(input, rows, joined, 3 * width, Then::store);
      if (model.rotary.defined()) {
        const auto* table = model.rotary.const_data_ptr<float>();
        for (int64_t i = 0; i < count; ++i) {
          for (auto row = starts[static_cast<size_t>(i)]; row < starts[static_cast<size_t>(i) + 1];
               ++row) {
            const auto position = row - starts[static_cast<size_t>(i)];
            // Queries and keys are neighbors.
            rotateHeads(joined + row * 3 * width, table + position * model.headSize, 2 * heads,
                        model.headSize);
          }
        }
      }
      const auto work = rows / count * width;
      forRanges(count * heads, std::max<int64_t>(1, workForThreads / (work / heads + 1)),
                [&](int64_t begin, int64_t end) {
                  for (auto i = begin; i < end; ++i) attendSource(i / heads, i % heads);
                });
      layer.output.apply(heard, rows, x, width, Then::add);
    });
    sublayer(layer.norms[1], rows, x,
             [&](const float* input) { feedForward(layer.feedForward, input, rows, x); });
  }
  if (model.encoderNorm.isDefined()) model.encoderNorm.apply(x, rows, x);
  memory_ = x;

  const auto size = static_cast<size_t>(model.form.layers * rows * 2 * width);
  const std::shared_ptr<float[]> storage(new float[size]);
  std::vector<EncodedSource> result(sources.size());
  for (int64_t l = 0; l < model.form.layers; ++l) {
    float* const keyValue = storage.get() + l * rows * 2 * width;
    model.decoder[static_cast<size_t>(l)].sourceKeyValue.apply(x, rows, keyValue, 2 * width,
                                                               Then::store);
    for (size_t i = 0; i < result.size(); ++i) {
      result[i].layers.push_back(keyValue + starts[i] * 2 * width);
    }
  }
  for (size_t i = 0; i < result.size(); ++i) {
    result[i].length = starts[i + 1] - starts[i];
    result[i].storage = storage;
  }
  return result;
}

float* ModelPasses::step(const std::vector<StepRow>& stepRows) {
  const auto& model = *model_;
  const auto width = model.width;
  const auto heads = model.form.heads;
  const auto rows = static_cast<int64_t>(stepRows.size());
  auto* const x = workspace_.reserve(residual, rows * width);
  auto* const joined = workspace_.reserve(projected, rows * 3 * width);
  auto* const heard = workspace_.reserve(attended, rows * width);
  int64_t longest = 0;
  for (const auto& row : stepRows) {
    longest = std::max({longest, row.position + 1, row.source->length});
  }
  const auto weightsStride = cachedWeights(longest);
  auto* const weightsStart = workspace_.reserve(weights, rows * heads * weightsStride);
  addresses_.resize(static_cast<size_t>(rows * longest));
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(model.headSize)));
  const auto forRows = [&](auto&& visit) {
    const auto grain = std::max<int64_t>(1, workForThreads / (longest * width));
    forRanges(rows, grain, [&](int64_t begin, int64_t end) {
      for (auto i = begin; i < end; ++i) visit(i, stepRows[static_cast<size_t>(i)]);
    });
  };
  const auto attend = [&](int64_t i, const float* query, int64_t count, auto&& keyValueAt) {
    auto* const found = weightsStart + i * heads * weightsStride;
    auto** const addresses = addresses_.data() + i * longest;
    for (int64_t t = 0; t < count; ++t) addresses[t] = keyValueAt(t);
    attendCached({query, addresses, count, heads, model.headSize, scale, found, weightsStride,
                  heard + i * width});
    return found;
  };
  for (int64_t i = 0; i < rows; ++i) {
    const auto& row = stepRows[static_cast<size_t>(i)];
    embed(model.target, row.token, row.position, x + i * width);
  }
  for (int64_t l = 0; l < model.form.layers; ++l) {
    const auto& layer = model.decoder[static_cast<size_t>(l)];
    sublayer(layer.norms[0], rows, x, [&](const float* input) {
      layer.queryKeyValue.apply(input, rows, joined, 3 * width, Then::store);
      forRows([&](int64_t i, const StepRow& row) {
        auto* const query = joined + i * 3 * width;
        if (model.rotary.defined()) {
          rotateHeads(query, model.rotary.const_data_ptr<float>() + row.position * model.headSize,
                      2 * heads, model.headSize);
        }
        std::copy_n(query + width, 2 * width, cells.at(row.cells[row.position], l));
        attend(i, query, row.position + 1,
               [&](int64_t t) { return static_cast<const float*>(cells.at(row.cells[t], l)); });
      });
      layer.output.apply(heard, rows, x, width, Then::add);
    });
    sublayer(layer.norms[1], rows, x, [&](const float* input) {
      layer.sourceQuery.apply(input, rows, joined, width, Then::store);
      forRows([&](int64_t i, const StepRow& row) {
        const auto* keyValue = row.source->layers[static_cast<size_t>(l)];
        const auto length = row.source->length;
        const auto* found = attend(i, joined + i * width, length,
                                   [&](int64_t t) { return keyValue + t * 2 * width; });
        for (int64_t h = 0; row.attention != nullptr && h < heads; ++h) {
          std::copy_n(found + h * weightsStride, length, row.attention + (l * heads + h) * length);
        }
      });
      layer.sourceOutput.apply(heard, rows, x, width, Then::add);
    });
    sublayer(layer.norms[2], rows, x,
             [&](const float* input) { feedForward(layer.feedForward, input, rows, x); });
  }
  if (model.decoderNorm.isDefined()) model.decoderNorm.apply(x, rows, x);
  auto* const scores = workspace_.reserve(logits, rows * model.vocabulary);
  model.generator.apply(x, rows, scores, model.vocabulary, Then::store);
  return scores;
}

}  // namespace torchformer::core
