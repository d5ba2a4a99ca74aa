#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/decode/prepared_linear.h"
#include "core/support/activation.h"
#include "core/support/norm_form.h"

// The weights of a Transformer as decoding uses them: prepared once, shared by all who decode with
// them, and never changed.

namespace torchformer::core {

/// A norm with its parameters.
class PreparedNorm {
 public:
  PreparedNorm() = default;
  /// `scale` [D], `shift` [D] or undefined.
  PreparedNorm(const at::Tensor& scale, const at::Tensor& shift, const NormForm& form);

  bool isDefined() const { return scale_.defined(); }
  /// output [rows, D] = norm(input [rows, D]); they may be the same.
  void apply(const float* input, int64_t rows, float* output) const;

 private:
  at::Tensor scale_, shift_;
  NormForm form_{};
};

struct PreparedFeedForward {
  PreparedLinear first;
  PreparedLinear gate;  // of SwiGLU, else empty
  PreparedLinear second;
};

struct PreparedEncoderLayer {
  PreparedNorm norms[2];
  PreparedLinear queryKeyValue;  // joined, [3 D]
  PreparedLinear output;
  PreparedFeedForward feedForward;
};

struct PreparedDecoderLayer {
  PreparedNorm norms[3];
  PreparedLinear queryKeyValue;  // joined, [3 D]
  PreparedLinear output;
  PreparedLinear sourceQuery;
  PreparedLinear sourceKeyValue;  // joined, [2 D]
  PreparedLinear sourceOutput;
  PreparedFeedForward feedForward;
};

struct PreparedEmbedding {
  at::Tensor table;      // [V, D], not scaled
  at::Tensor positions;  // [length, D]; undefined if positions are not added
};

/// How the layers are put together.
struct ModelForm {
  int64_t layers;
  int64_t heads;
  bool postNorm;
  NormForm norm;
  Activation activation;
  WeightPrecision precision;  // of the linear layers
};

class PreparedModel {
 public:
  /// `weights`: float32 on the CPU, undefined where the model has none, in this order:
  /// source table, source positions, target table, target positions, rotary table; generator's
  /// weight and bias; final norms of encoder and decoder, scale and shift each; of each encoder
  /// layer the norms 0 and 1, its attention, its feed-forward; of each decoder layer the norms 0 to
  /// 2, its attentions to the target and to the source, its feed-forward. An attention is weight
  /// and bias of query, key, value and output; a feed-forward those of w_1, w_2 and w_3.
  /// @throws ERR_SHAPE, ERR_DTYPE if they do not fit together
  PreparedModel(const std::vector<at::Tensor>& weights, const ModelForm& form);

  ModelForm form;
  int64_t width;       // D
  int64_t innerWidth;  // of the feed-forward layers
  int64_t headSize;
  int64_t vocabulary;  // of the target
  PreparedEmbedding source, target;
  at::Tensor rotary;  // [length, headSize]; undefined without rotary positions
  PreparedLinear generator;
  PreparedNorm encoderNorm, decoderNorm;
  std::vector<PreparedEncoderLayer> encoder;
  std::vector<PreparedDecoderLayer> decoder;

  /// Tokens that the position tables allow; a very large number without tables.
  int64_t longestSource() const { return longest(source); }
  int64_t longestTarget() const { return longest(target); }

 private:
  int64_t longest(const PreparedEmbedding& embedding) const;
};

}  // namespace torchformer::core
