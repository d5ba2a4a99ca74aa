// Without an instruction for sums of four products: pairs in 16 bits, then pairs of these in 32.
// Weights have 7 bits, so that a pair always fits.

#include <immintrin.h>

#include "core/product/int8_loops.h"

namespace torchformer::core {
namespace {

/// The first `count` elements of a vector, for masked loads and stores.
constexpr int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

struct Avx2 {
  using Sums = __m256i;
  using Numbers = __m256i;
  static constexpr int width = 8;
  static constexpr int maxRows = 5;
  static constexpr int maxSums = 10;
  static constexpr int32_t mostWeight = 63;
  static constexpr int32_t offset = 64;

  static Sums zero() { return _mm256_setzero_si256(); }
  static Numbers load(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static Sums multiplyAdd(Numbers weights, const int8_t* a, Sums sums) {
    int32_t four;
    __builtin_memcpy(&four, a, sizeof four);
    const __m256i pairs = _mm256_maddubs_epi16(weights, _mm256_set1_epi32(four));
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  static __m256 finish(Sums sums, int32_t rowSum, float rowScale, __m256 columnScale) {
    const __m256 exact = _mm256_cvtepi32_ps(_mm256_sub_epi32(sums, _mm256_set1_epi32(rowSum)));
    return _mm256_mul_ps(exact, _mm256_mul_ps(_mm256_set1_ps(rowScale), columnScale));
  }
  static __m256 add(__m256 x, __m256 y) { return _mm256_add_ps(x, y); }
  /// NaN stays NaN.
  static __m256 relu(__m256 x) { return _mm256_max_ps(_mm256_setzero_ps(), x); }
  static __m256i first(int64_t count) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ones + 8 - count));
  }
  static __m256 loadFirst(const float* p, int64_t count) {
    return _mm256_maskload_ps(p, first(count));
  }
  static void storeFirst(float* p, __m256 x, int64_t count) {
    _mm256_maskstore_ps(p, first(count), x);
  }
};

constexpr Int8Kernel kernel = int8KernelOf<Avx2>("AVX2");

}  // namespace

const Int8Kernel& avx2Int8Kernel() { return kernel; }

}  // namespace torchformer::core
