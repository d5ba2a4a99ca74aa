#include "core/decode/prepared_model.h"

#include <ATen/ops/cat.h>

#include <algorithm>

#include "core/loops/for_each_row.h"
#include "core/loops/norm.h"
#include "core/support/check.h"

namespace torchformer::core {

namespace {

constexpr auto owner = "decode";

/// The weights in their order, each checked.
class WeightReader {
 public:
  explicit WeightReader(const std::vector<at::Tensor>& weights) : weights_(weights) {}

  /// The next weight; undefined if the model has none.
  at::Tensor next(const char* name) {
    TF_CHECK(ERR_SHAPE, at_ < weights_.size(), owner, ": there are only ", weights_.size(),
             " weights; the next would be ", name);
    const auto& weight = weights_[at_++];
    if (!weight.defined()) return weight;
    TF_CHECK(ERR_DTYPE, weight.is_cpu() && weight.scalar_type() == at::kFloat, owner, ": ", name,
             " must be float32 on the CPU, got ", weight.scalar_type(), " on ", weight.device());
    return weight.detach().contiguous();
  }

  at::Tensor matrix(const char* name, int64_t rows, int64_t columns) {
    return checked(name, next(name), {rows, columns});
  }
  at::Tensor vector(const char* name, int64_t size) { return checked(name, next(name), {size}); }

  at::Tensor optionalVector(const char* name, int64_t size) {
    const auto found = next(name);
    return found.defined() ? checked(name, found, {size}) : found;
  }
  at::Tensor optionalTable(const char* name, int64_t columns) {
    auto found = next(name);
    if (!found.defined()) return found;
    if (found.dim() == 3) found = found.squeeze(0);
    TF_CHECK(ERR_SHAPE, found.dim() == 2 && found.size(1) == columns, owner, ": ", name,
             " must be [length, ", columns, "], got ", found.sizes());
    return found.contiguous();
  }

  PreparedNorm norm(const char* name, int64_t width, const NormForm& form) {
    const auto scale = optionalVector(name, width);
    const auto shift = optionalVector(name, width);
    return scale.defined() ? PreparedNorm(scale, shift, form) : PreparedNorm();
  }

  struct Linear {
    at::Tensor weight, bias;
  };
  Linear linear(const char* name, int64_t out, int64_t in) {
    auto weight = matrix(name, out, in);
    return {weight, optionalVector(name, out)};
  }

  void finish() const {
    TF_CHECK(ERR_SHAPE, at_ == weights_.size(), owner, ": expected ", at_, " weights, got ",
             weights_.size());
  }

 private:
  static at::Tensor checked(const char* name, const at::Tensor& found, at::IntArrayRef shape) {
    TF_CHECK(ERR_SHAPE, found.defined() && found.sizes() == shape, owner, ": ", name, " must be ",
             shape, ", got ", found.defined() ? c10::str(found.sizes()) : "none");
    return found;
  }

  const std::vector<at::Tensor>& weights_;
  size_t at_ = 0;
};

PreparedLinear joined(const std::vector<WeightReader::Linear>& parts, WeightPrecision precision) {
  std::vector<at::Tensor> weights, biases;
  for (const auto& part : parts) {
    weights.push_back(part.weight);
    if (part.bias.defined()) biases.push_back(part.bias);
  }
  TF_CHECK(ERR_SHAPE, biases.empty() || biases.size() == parts.size(), owner,
           ": the projections of an attention must all have biases, or none");
  return {at::cat(weights), biases.empty() ? at::Tensor() : at::cat(biases), precision};
}

PreparedLinear prepared(const WeightReader::Linear& linear, WeightPrecision precision) {
  return {linear.weight, linear.bias, precision};
}

struct AttentionWeights {
  WeightReader::Linear query, key, value, output;
};

AttentionWeights readAttention(WeightReader& reader, const char* name, int64_t width) {
  auto query = reader.linear(name, width, width);
  auto key = reader.linear(name, width, width);
  auto value = reader.linear(name, width, width);
  return {query, key, value, reader.linear(name, width, width)};
}

PreparedFeedForward readFeedForward(WeightReader& reader, int64_t width, const ModelForm& form,
                                    int64_t& innerWidth) {
  const auto first = reader.next("w_1");
  TF_CHECK(ERR_SHAPE, first.defined() && first.dim() == 2 && first.size(1) == width, owner,
           ": w_1 must be [dFf, ", width, "], got ",
           first.defined() ? c10::str(first.sizes()) : "none");
  innerWidth = first.size(0);
  const auto firstBias = reader.optionalVector("w_1's bias", innerWidth);
  const auto second = reader.linear("w_2", width, innerWidth);
  PreparedFeedForward result{
      {first, firstBias, form.precision}, {}, prepared(second, form.precision)};
  if (form.activation == Activation::swiglu) {
    result.gate = prepared(reader.linear("w_3", innerWidth, width), form.precision);
  } else {
    reader.next("w_3");
    reader.next("w_3's bias");
  }
  return result;
}

}  // namespace

PreparedNorm::PreparedNorm(const at::Tensor& scale, const at::Tensor& shift, const NormForm& form)
    : scale_(scale.clone()), shift_(shift.defined() ? shift.clone() : shift), form_(form) {}

void PreparedNorm::apply(const float* input, int64_t rows, float* output) const {
  const auto width = scale_.size(0);
  const auto* scale = scale_.const_data_ptr<float>();
  const auto* shift = shift_.defined() ? shift_.const_data_ptr<float>() : nullptr;
  forEachRow({rows, width}, [&](int64_t row) {
    normRow(input + row * width, scale, shift, output + row * width, width, form_);
  });
}

PreparedModel::PreparedModel(const std::vector<at::Tensor>& weights, const ModelForm& given)
    : form(given) {
  WeightReader reader(weights);
  const auto readTable = [&](const char* name) {
    auto table = reader.next(name);
    TF_CHECK(ERR_SHAPE, table.defined() && table.dim() == 2 && table.numel() > 0, owner, ": ", name,
             " must be [vocabulary, dModel], got ",
             table.defined() ? c10::str(table.sizes()) : "none");
    return table.clone();
  };
  source.table = readTable("source table");
  width = source.table.size(1);
  TF_CHECK(ERR_SHAPE, form.heads >= 1 && width % form.heads == 0, owner, ": heads must divide ",
           width, ", got ", form.heads);
  TF_CHECK(ERR_SHAPE, form.layers >= 1, owner, ": layers must be at least 1, got ", form.layers);
  headSize = width / form.heads;
  const auto ownCopy = [](const at::Tensor& table) {
    return table.defined() ? table.clone() : table;
  };
  source.positions = ownCopy(reader.optionalTable("source positions", width));
  target.table = readTable("target table");
  TF_CHECK(ERR_SHAPE, target.table.size(1) == width, owner, ": target table must be [vocabulary, ",
           width, "], got ", target.table.sizes());
  target.positions = ownCopy(reader.optionalTable("target positions", width));
  rotary = ownCopy(reader.optionalTable("rotary table", headSize));
  vocabulary = target.table.size(0);
  generator = prepared(reader.linear("generator", vocabulary, width), form.precision);
  encoderNorm = reader.norm("encoder's final norm", width, form.norm);
  decoderNorm = reader.norm("decoder's final norm", width, form.norm);
  for (int64_t i = 0; i < form.layers; ++i) {
    PreparedEncoderLayer layer;
    for (auto& norm : layer.norms) norm = reader.norm("norm", width, form.norm);
    const auto attention = readAttention(reader, "attention", width);
    layer.queryKeyValue = joined({attention.query, attention.key, attention.value}, form.precision);
    layer.output = prepared(attention.output, form.precision);
    layer.feedForward = readFeedForward(reader, width, form, innerWidth);
    encoder.push_back(std::move(layer));
  }
  for (int64_t i = 0; i < form.layers; ++i) {
    PreparedDecoderLayer layer;
    for (auto& norm : layer.norms) norm = reader.norm("norm", width, form.norm);
    const auto self = readAttention(reader, "attention to the target", width);
    layer.queryKeyValue = joined({self.query, self.key, self.value}, form.precision);
    layer.output = prepared(self.output, form.precision);
    const auto cross = readAttention(reader, "attention to the source", width);
    layer.sourceQuery = prepared(cross.query, form.precision);
    layer.sourceKeyValue = joined({cross.key, cross.value}, form.precision);
    layer.sourceOutput = prepared(cross.output, form.precision);
    layer.feedForward = readFeedForward(reader, width, form, innerWidth);
    decoder.push_back(std::move(layer));
  }
  reader.finish();
}

int64_t PreparedModel::longest(const PreparedEmbedding& embedding) const {
  int64_t length = int64_t{1} << 31;
  if (embedding.positions.defined()) length = std::min(length, embedding.positions.size(0));
  if (rotary.defined()) length = std::min(length, rotary.size(0));
  return length;
}

}  // namespace torchformer::core
