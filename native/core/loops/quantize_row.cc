#include "core/loops/quantize_row.h"

#include "core/loops/simd.h"

namespace torchformer::core {

TF_VECTORIZED QuantizedRow quantizeRow(const float* row, int64_t count, int8_t* numbers,
                                       int64_t stride) {
  constexpr float most = 127.0F;
  float highest = 0;
  float fault = 0;
#pragma omp simd reduction(max : highest) reduction(+ : fault)
  for (int64_t i = 0; i < count; ++i) {
    const float size = row[i] < 0 ? -row[i] : row[i];
    highest = size > highest ? size : highest;
    // NaN for NaN and infinity.
    fault += row[i] - row[i];
  }
  const float factor = highest > 0 && fault == 0 ? most / highest : 0.0F;
  // Adding 1.5 * 2^23 rounds to the nearest integer.
  constexpr float roundingShift = 12582912.0F;
  int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) {
    const float scaled = row[i] * factor;
    const auto number = static_cast<int32_t>((scaled + roundingShift) - roundingShift);
    numbers[i] = static_cast<int8_t>(number);
    sum += number;
  }
  for (int64_t i = count; i < stride; ++i) numbers[i] = 0;
  return {highest / most + fault, sum};
}

}  // namespace torchformer::core
