#include "core/decode/prepared_linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/round.h>
#include <ATen/ops/where.h>

#include <string>
#include <type_traits>
#include <vector>

#include "core/loops/finish_rows.h"
#include "core/product/kept_panels.h"
#include "core/product/tiled_product.h"
#include "core/support/check.h"

namespace torchformer::core {

namespace {

/// The largest whole number of an int8 weight; symmetric, so that a weight has no offset.
constexpr double mostInt8 = 127;

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
  auto stored = weight;
  if (precision == WeightPrecision::int8) {
    const auto highest = at::amax(weight.abs(), {1});
    // A row of zeros needs no scale.
    scale_ = at::where(highest == 0, at::ones_like(highest), highest / mostInt8);
    stored = at::round(weight / scale_.unsqueeze(1));
  }
  const auto panels = packedPanels(stored.t());
  isPacked_ = panels.defined();
  if (!isPacked_) {
    weight_ = precision == WeightPrecision::bfloat16 ? stored.to(at::kBFloat16).to(at::kFloat)
                                                     : stored.clone();
  } else if (precision == WeightPrecision::bfloat16) {
    weight_ = panels.to(at::kBFloat16);
  } else {
    weight_ = precision == WeightPrecision::int8 ? panels.to(at::kChar) : panels;
  }
}

template <typename W>
void PreparedLinear::applyTiled(const float* x, int64_t rows, float* y, int64_t yStride,
                                Then then) const {
  TiledProduct<float, W> product{rows, in_, out_, {x, in_, 1}, {nullptr, 1, in_}};
  product.packedB = static_cast<const W*>(weight_.const_data_ptr());
  // A sum of scaled products is summed after it is scaled, so the products have a place of their
  // own.
  static thread_local std::vector<float> products;
  const bool isSeparate = then == Then::add && scale_.defined();
  if (isSeparate && std::ssize(products) < rows * out_) {
    products.resize(static_cast<size_t>(rows * out_));
  }
  product.c = isSeparate ? products.data() : y;
  product.cStride = isSeparate ? out_ : yStride;
  product.accumulates = then == Then::add && !isSeparate;
  const FinishedRows finished{scale_.defined() ? scale_.const_data_ptr<float>() : nullptr,
                              bias_.defined() ? bias_.const_data_ptr<float>() : nullptr,
                              then == Then::relu};
  const auto finishTile = [&](const FinishedTile<float>& tile) {
    auto* const target = isSeparate ? y + tile.row * yStride + tile.column : nullptr;
    finishRows(tile, finished, target, yStride);
  };
  const Finish<float> finish = finishTile;
  if (!finished.isEmpty()) product.finish = &finish;
  if constexpr (std::is_same_v<W, float>) {
    multiplyTiled(*tileKernel<float>(), product);
  } else {
    multiplyNarrow(*tileKernel<float>(), product);
  }
}

/// Row by row, because the bits of libtorch's products depend on the number of rows.
void PreparedLinear::applyPlain(const float* x, int64_t rows, float* y, int64_t yStride,
                                Then then) const {
  const auto result = asTensor(y, rows, out_, yStride);
  for (int64_t row = 0; row < rows; ++row) {
    auto one = at::mm(asTensor(x + row * in_, 1, in_, in_), weight_.t());
    if (scale_.defined()) one.mul_(scale_);
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
  if (!isPacked_) return applyPlain(x, rows, y, yStride, then);
  switch (precision_) {
    case WeightPrecision::bfloat16:
      return applyTiled<uint16_t>(x, rows, y, yStride, then);
    case WeightPrecision::int8:
      return applyTiled<int8_t>(x, rows, y, yStride, then);
    default:
      return applyTiled<float>(x, rows, y, yStride, then);
  }
}

}  // namespace torchformer::core
