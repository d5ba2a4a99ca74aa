#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/decode/prepared_model.h"

// The two passes of decoding: the encoder over whole sources, and one step of the decoder for any
// number of unfinished targets. Rows never see each other, and padding does not exist, so a
// sentence gives the same bits alone and in any company.

namespace torchformer::core {

/// What the decoder reads of a source in every step.
struct EncodedSource {
  int64_t length = 0;
  /// Of each layer, keys and values of the attention to the source: [length, 2 D].
  std::vector<const float*> layers;
  /// Keeps them alive.
  std::shared_ptr<const void> storage;
};

/// Memory that grows to its largest use and is then used again.
class Workspace {
 public:
  /// At least `count` elements, not initialized; valid until the next call with this slot.
  float* reserve(int slot, int64_t count);

 private:
  std::vector<std::vector<float>> slots_;
};

/// Keys and values of target tokens. A cell is one token of one hypothesis: of each layer its key
/// and its value. Hypotheses with a common beginning have cells in common, so that a beam goes on
/// from another hypothesis without a copy.
class CellPool {
 public:
  CellPool(int64_t layers, int64_t width) : layers_(layers), width_(width) {}

  int32_t take();
  void give(int32_t cell) { free_.push_back(cell); }

  /// [2 D]: the key, then the value.
  float* at(int32_t cell, int64_t layer) const {
    return chunks_[static_cast<size_t>(cell / chunk)].get() +
           (layer * chunk + cell % chunk) * 2 * width_;
  }

 private:
  /// Cells that are allocated at a time.
  static constexpr int32_t chunk = 64;

  int64_t layers_, width_;
  std::vector<std::unique_ptr<float[]>> chunks_;
  std::vector<int32_t> free_;
};

/// A row of a decoder step.
struct StepRow {
  int64_t token;
  int64_t position;
  const int32_t* cells;  // [position + 1]; the last one is written
  const EncodedSource* source;
  /// Gets the weights of the attention to the source, of all layers and heads [layers, heads,
  /// length]; null: not wanted.
  float* attention;
};

class ModelPasses {
 public:
  explicit ModelPasses(std::shared_ptr<const PreparedModel> model)
      : model_(std::move(model)), cells(model_->form.layers, model_->width) {}

  /// Encodes sources of ids together. Ids and lengths must be in range, and no source empty.
  std::vector<EncodedSource> encode(const std::vector<const std::vector<int64_t>*>& sources);

  /// The encoder's output of the last call of `encode`, [all tokens, D].
  const float* memory() const { return memory_; }

  /// Logits of the next token of each row, [rows, V]; valid until the next call.
  float* step(const std::vector<StepRow>& rows);

  const PreparedModel& model() const { return *model_; }

 private:
  void embed(const PreparedEmbedding& embedding, int64_t token, int64_t position, float* x) const;
  void sublayer(const PreparedNorm& norm, int64_t rows, float* x,
                c10::function_ref<void(const float* input)> compute);
  void feedForward(const PreparedFeedForward& layer, const float* input, int64_t rows, float* x);

  std::shared_ptr<const PreparedModel> model_;
  Workspace workspace_;
  std::vector<const float*> addresses_;  // of what each row attends to
  const float* memory_ = nullptr;

 public:
  CellPool cells;
};

}  // namespace torchformer::core
