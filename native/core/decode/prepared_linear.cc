#include "core/decode/prepared_linear.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>

#include "core/product/epilogue.h"
#include "core/product/kept_panels.h"
#include "core/product/tiled_product.h"

namespace torchformer::core {

namespace {

at::Tensor asTensor(const float* data, int64_t rows, int64_t columns, int64_t stride) {
  // from_blob has no form for data that is only read.
  return at::from_blob(const_cast<float*>(data), {rows, columns}, {stride, 1},
                       at::TensorOptions().dtype(at::kFloat));
}

}  // namespace

PreparedLinear::PreparedLinear(const at::Tensor& weight, const at::Tensor& bias)
    : in_(weight.size(1)), out_(weight.size(0)) {
  panels_ = packedPanels(weight.t());
  if (!panels_.defined()) weight_ = weight.clone();
  if (bias.defined()) bias_ = bias.clone();
}

void PreparedLinear::apply(const float* x, int64_t rows, float* y, int64_t yStride,
                           Then then) const {
  Epilogue epilogue;
  epilogue.bias = bias_;
  epilogue.relu = then == Then::relu;
  if (!panels_.defined()) {
    const auto result = asTensor(y, rows, out_, yStride);
    for (int64_t row = 0; row < rows; ++row) {
      auto one = at::mm(asTensor(x + row * in_, 1, in_, in_), weight_.t());
      finish_(one, epilogue);
      const auto place = result.narrow(0, row, 1);
      if (then == Then::add) {
        place.add_(one);
      } else {
        place.copy_(one);
      }
    }
    return;
  }
  TiledProduct<float> product{rows, in_, out_, {x, in_, 1}, {nullptr, 1, in_}};
  product.packedB = panels_.const_data_ptr<float>();
  product.c = y;
  product.cStride = yStride;
  product.accumulates = then == Then::add;
  if (epilogue.isEmpty()) {
    multiplyTiled(*tileKernel<float>(), product);
    return;
  }
  const EpilogueSteps<float> steps(epilogue);
  const Finish<float> finish = steps;
  product.finish = &finish;
  multiplyTiled(*tileKernel<float>(), product);
}

int64_t PreparedLinear::bytes() const {
  return static_cast<int64_t>((panels_.defined() ? panels_ : weight_).nbytes());
}

}  // namespace torchformer::core
