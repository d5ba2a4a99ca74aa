#pragma once

#include "core/product/tiled_product.h"

namespace torchformer::core {

/// The steps that follow the sums of a prepared layer.
struct FinishedRows {
  const float* bias;  // of each column; null: none
  bool relu;

  bool isEmpty() const { return bias == nullptr && !relu; }
};

/// Does the steps for a part of a product, in place.
void finishRows(const FinishedTile<float>& tile, const FinishedRows& steps);

}  // namespace torchformer::core
