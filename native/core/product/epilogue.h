#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/product/tiled_product.h"

// What is done to the elements of a product when their sums are complete: while they are in the
// cache, instead of in passes over the whole result.

namespace torchformer::core {

/// The steps in their order; the defaults do nothing.
struct Epilogue {
  double scale = 1.0;
  at::Tensor bias = {};  // [m], added to every row
  bool relu = false;     // negative elements become 0; NaN stays NaN, so that it reaches the loss
  at::Tensor positive = {};  // [n, m]; where it is 0 or below, the result is 0: the slope of ReLU
  double dropoutP = 0;       // dropped elements become 0; the others are not scaled
  uint64_t dropoutSeed = 0;

  bool isEmpty() const;
};

/// The steps of an epilogue with the addresses of its tensors. They must live as long.
template <typename T>
class EpilogueSteps {
 public:
  explicit EpilogueSteps(const Epilogue& epilogue);

  /// Does the steps for a part of the product.
  void operator()(const FinishedTile<T>& tile) const;

 private:
  at::Tensor bias_, positive_;
  const T* biasData_ = nullptr;
  const T* positiveData_ = nullptr;
  int64_t columns_ = 0;  // of `positive`
  T scale_;
  bool relu_;
  bool drops_;
  bool dropsAll_;
  uint64_t seed_;
  uint32_t threshold_;
};

/// Does the steps for a whole product [n, m] of float32 or float64, in place, on all threads.
void finish_(const at::Tensor& product, const Epilogue& epilogue);

}  // namespace torchformer::core
