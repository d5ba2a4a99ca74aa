// Sums of four products in one instruction.

#include <immintrin.h>

#include "core/product/int8_loops.h"

namespace torchformer::core {
namespace {

struct Vnni {
  using Sums = __m512i;
  using Numbers = __m512i;
  static constexpr int width = 16;
  static constexpr int maxRows = 14;
  static constexpr int maxSums = 28;
  static constexpr int32_t mostWeight = 127;
  static constexpr int32_t offset = 128;

  static Sums zero() { return _mm512_setzero_si512(); }
  static Numbers load(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static Sums multiplyAdd(Numbers weights, const int8_t* a, Sums sums) {
    int32_t four;
    __builtin_memcpy(&four, a, sizeof four);
    return _mm512_dpbusd_epi32(sums, weights, _mm512_set1_epi32(four));
  }
  static __m512 finish(Sums sums, int32_t rowSum, float rowScale, __m512 columnScale) {
    const __m512 exact = _mm512_cvtepi32_ps(_mm512_sub_epi32(sums, _mm512_set1_epi32(rowSum)));
    return _mm512_mul_ps(exact, _mm512_mul_ps(_mm512_set1_ps(rowScale), columnScale));
  }
  static __m512 add(__m512 x, __m512 y) { return _mm512_add_ps(x, y); }
  /// NaN stays NaN.
  static __m512 relu(__m512 x) { return _mm512_max_ps(_mm512_setzero_ps(), x); }
  static __mmask16 first(int64_t count) { return static_cast<__mmask16>((1U << count) - 1U); }
  static __m512 loadFirst(const float* p, int64_t count) {
    return _mm512_maskz_loadu_ps(first(count), p);
  }
  static void storeFirst(float* p, __m512 x, int64_t count) {
    _mm512_mask_storeu_ps(p, first(count), x);
  }
};

constexpr Int8Kernel kernel = int8KernelOf<Vnni>("AVX-512 VNNI");

}  // namespace

const Int8Kernel& vnniInt8Kernel() { return kernel; }

}  // namespace torchformer::core
