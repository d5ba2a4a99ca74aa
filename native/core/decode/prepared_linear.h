#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/decode/weight_precision.h"
#include "core/product/epilogue.h"
#include "core/product/int8_product.h"

// A linear layer whose weight is prepared once, for products of few rows in every decoding step.

namespace torchformer::core {

/// What follows the product of a prepared layer, in its last pass over the result.
enum class Then {
  store,  // y = x W^T + b
  relu,   // y = max(x W^T + b, 0)
  add,    // y += x W^T + b: the residual sum
};

/// The bits of a row of its results depend on that row alone: not on the number of rows, their
/// order or the number of threads.
class PreparedLinear {
 public:
  PreparedLinear() = default;

  /// `weight` [out, in], `bias` [out] or undefined; both float32 on the CPU. Neither is kept.
  PreparedLinear(const at::Tensor& weight, const at::Tensor& bias, WeightPrecision precision);

  /// x [rows, in], y [rows, out], whose rows are `yStride` elements apart.
  void apply(const float* x, int64_t rows, float* y, int64_t yStride, Then then) const;

  int64_t outFeatures() const { return out_; }

 private:
  template <typename W>
  void applyTiled(const float* x, int64_t rows, float* y, int64_t yStride, Then then) const;
  void applyPlain(const float* x, int64_t rows, float* y, int64_t yStride, Then then) const;

  int64_t in_ = 0;
  int64_t out_ = 0;
  WeightPrecision precision_ = WeightPrecision::float32;
  Int8Weight int8_;    // of int8 only
  at::Tensor panels_;  // of the others: packed for our kernels, in `precision_`
  at::Tensor weight_;  // where the processor has no kernel: [out, in] in float32, rounded
  at::Tensor bias_;    // [out]; may be undefined
  EpilogueSteps<float> addBias_{Epilogue()}, addBiasAndRelu_{Epilogue()};
};

}  // namespace torchformer::core
