#pragma once

#include "core/product/tiled_product.h"

namespace torchformer::core {

/// The steps that follow the sums of a prepared layer.
struct FinishedRows {
  const float* scale;  // of each column; null: none
  const float* bias;   // of each column; null: none
  bool relu;

  bool isEmpty() const { return scale == nullptr && bias == nullptr && !relu; }
};

/// Does the steps for a part of a product, in place; or adds what comes out to `target`, whose rows
/// are `targetStride` elements apart, unless it is null.
void finishRows(const FinishedTile<float>& tile, const FinishedRows& steps, float* target,
                int64_t targetStride);

}  // namespace torchformer::core
