#include "core/decode/prepared_linear.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>

#include <string>
#include <type_traits>

#include "core/product/kept_panels.h"
#include "core/product/tiled_product.h"
#include "core/support/check.h"

namespace torchformer::core {

namespace {

at::Tensor asTensor(const float* data, int64_t rows, int64_t columns, int64_t stride) {
  // from_blob has no form for data that is only read.
  return at::from_blob(const_cast<float*>(data), {rows, columns}, {stride, 1},
                       at::TensorOptions().dtype(at::kFloat));
}

}  // namespace

WeightPrecision parseWeightPrecision(const char* op, std::string_view name) {
  if (name == "float32") return WeightPrecision::float32;
  if (name == "bfloat16") return WeightPrecision::bfloat16;
  TF_CHECK(ERR_ARGUMENT, name == "int8", op,
           ": precision must be 'float32', 'bfloat16' or 'int8', got '", std::string(name), "'");
  return WeightPrecision::int8;
}

PreparedLinear::PreparedLinear(const at::Tensor& weight, const at::Tensor& bias,
                               WeightPrecision precision)
    : in_(weight.size(1)), out_(weight.size(0)), precision_(precision) {
  if (bias.defined()) bias_ = bias.clone();
  addBias_ = EpilogueSteps<float>({.bias = bias_});
  addBiasAndRelu_ = EpilogueSteps<float>({.bias = bias_, .relu = true});
  if (precision == WeightPrecision::int8 && int8Kernel() != nullptr) {
    int8_ = packInt8(*int8Kernel(), weight);
    return;
  }
  panels_ = packedPanels(weight.t());
  if (!panels_.defined()) {
    weight_ = precision == WeightPrecision::float32 ? weight.clone()
                                                    : weight.to(at::kBFloat16).to(at::kFloat);
  } else if (precision == WeightPrecision::bfloat16) {
    panels_ = panels_.to(at::kBFloat16);
  }
}

template <typename W>
void PreparedLinear::applyTiled(const float* x, int64_t rows, float* y, int64_t yStride,
                                Then then) const {
  TiledProduct<float, W> product{rows, in_, out_, {x, in_, 1}, {nullptr, 1, in_}};
  product.packedB = static_cast<const W*>(panels_.const_data_ptr());
  product.c = y;
  product.cStride = yStride;
  product.accumulates = then == Then::add;
  const bool isRelu = then == Then::relu;
  const Finish<float> finish = isRelu ? addBiasAndRelu_ : addBias_;
  if (isRelu || bias_.defined()) product.finish = &finish;
  if constexpr (std::is_same_v<W, float>) {
    multiplyTiled(*tileKernel<float>(), product);
  } else {
    multiplyBfloat16(*tileKernel<float>(), product);
  }
}

/// Row by row, because the bits of libtorch's products depend on the number of rows.
void PreparedLinear::applyPlain(const float* x, int64_t rows, float* y, int64_t yStride,
                                Then then) const {
  const auto result = asTensor(y, rows, out_, yStride);
  for (int64_t row = 0; row < rows; ++row) {
    auto one = at::mm(asTensor(x + row * in_, 1, in_, in_), weight_.t());
    if (bias_.defined()) one.add_(bias_);
    if (then == Then::relu) one.relu_();
    const auto place = result.narrow(0, row, 1);
    if (then == Then::add) {
      place.add_(one);
    } else {
      place.copy_(one);
    }
  }
}

void PreparedLinear::apply(const float* x, int64_t rows, float* y, int64_t yStride,
                           Then then) const {
  if (int8_.panels.defined()) {
    const auto* const bias = bias_.defined() ? bias_.const_data_ptr<float>() : nullptr;
    multiplyInt8(*int8Kernel(), int8_, x, rows, y, yStride, bias, then == Then::relu,
                 then == Then::add);
  } else if (!panels_.defined()) {
    applyPlain(x, rows, y, yStride, then);
  } else if (precision_ == WeightPrecision::bfloat16) {
    applyTiled<uint16_t>(x, rows, y, yStride, then);
  } else {
    applyTiled<float>(x, rows, y, yStride, then);
  }
}

}  // namespace torchformer::core
