#include "core/loops/finish_rows.h"

#include "core/loops/simd.h"

namespace torchformer::core {

TF_VECTORIZED void finishRows(const FinishedTile<float>& tile, const FinishedRows& steps) {
  const float* const bias = steps.bias == nullptr ? nullptr : steps.bias + tile.column;
  for (int64_t r = 0; r < tile.rows; ++r) {
    float* const row = tile.data + r * tile.stride;
    if (bias != nullptr) {
#pragma omp simd
      for (int64_t i = 0; i < tile.columns; ++i) row[i] += bias[i];
    }
    if (steps.relu) {
      // NaN stays NaN.
#pragma omp simd
      for (int64_t i = 0; i < tile.columns; ++i) row[i] = row[i] < 0.0F ? 0.0F : row[i];
    }
  }
}

}  // namespace torchformer::core
