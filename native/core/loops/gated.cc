#include "core/loops/gated.h"

#include "core/loops/simd.h"

namespace torchformer::core {

TF_VECTORIZED void siluTimes(float* values, const float* gate, int64_t count) {
  // Beyond it, exp(-x) overflows, and silu(x) is 0 to the last place.
  constexpr float lowest = -87.0F;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float x = values[i];
    const float bounded = x < lowest ? lowest : x;
    values[i] = x / (1.0F + vectorExp(-bounded)) * gate[i];
  }
}

}  // namespace torchformer::core
