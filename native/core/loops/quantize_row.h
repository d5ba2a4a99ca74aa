#pragma once

#include <cstdint>

namespace torchformer::core {

struct QuantizedRow {
  float scale;  // NaN if an element is not finite
  int32_t sum;  // of the whole numbers
};

/// Rounds a row to whole numbers from -127 to 127 with one scale; zeros up to `stride`.
QuantizedRow quantizeRow(const float* row, int64_t count, int8_t* numbers, int64_t stride);

}  // namespace torchformer::core
