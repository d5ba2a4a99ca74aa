// Tiles of 6 rows by two vectors of 8 floats (or 4 doubles): 12 of the 16 registers hold sums.

#include <immintrin.h>

#include "core/product/tile_loops.h"

namespace torchformer::core {
namespace {

/// The first `count` elements of a vector, for masked loads and stores.
constexpr int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
constexpr int64_t longOnes[8] = {-1, -1, -1, -1, 0, 0, 0, 0};

struct Avx2Float {
  using Element = float;
  using Register = __m256;
  static constexpr int width = 8;
  static constexpr int maxRows = 6;
  static constexpr int maxSums = 12;
  static constexpr bool isWidening = true;

  static Register zero() { return _mm256_setzero_ps(); }
  static Register load(const float* p) { return _mm256_loadu_ps(p); }
  static Register load(const uint16_t* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static Register broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  static Register multiplyAdd(Register x, Register y, Register sum) {
    return _mm256_fmadd_ps(x, y, sum);
  }
  static Register add(Register x, Register y) { return _mm256_add_ps(x, y); }
  static void store(float* p, Register x) { _mm256_storeu_ps(p, x); }
  static __m256i first(int64_t count) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ones + 8 - count));
  }
  static Register loadFirst(const float* p, int64_t count) {
    return _mm256_maskload_ps(p, first(count));
  }
  static void storeFirst(float* p, Register x, int64_t count) {
    _mm256_maskstore_ps(p, first(count), x);
  }
  static void transpose(Register* block) {
    Register pairs[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
      pairs[i] = _mm256_unpacklo_ps(block[i], block[i + 1]);
      pairs[i + 1] = _mm256_unpackhi_ps(block[i], block[i + 1]);
    }
    Register quads[8];
#pragma GCC unroll 2
    for (int g = 0; g < 8; g += 4) {
      quads[g] = _mm256_shuffle_ps(pairs[g], pairs[g + 2], 0x44);
      quads[g + 1] = _mm256_shuffle_ps(pairs[g], pairs[g + 2], 0xee);
      quads[g + 2] = _mm256_shuffle_ps(pairs[g + 1], pairs[g + 3], 0x44);
      quads[g + 3] = _mm256_shuffle_ps(pairs[g + 1], pairs[g + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      block[c] = _mm256_permute2f128_ps(quads[c], quads[4 + c], 0x20);
      block[4 + c] = _mm256_permute2f128_ps(quads[c], quads[4 + c], 0x31);
    }
  }
};

struct Avx2Double {
  using Element = double;
  using Register = __m256d;
  static constexpr int width = 4;
  static constexpr int maxRows = 6;
  static constexpr int maxSums = 12;
  static constexpr bool isWidening = false;

  static Register zero() { return _mm256_setzero_pd(); }
  static Register load(const double* p) { return _mm256_loadu_pd(p); }
  static Register broadcast(const double* p) { return _mm256_broadcast_sd(p); }
  static Register multiplyAdd(Register x, Register y, Register sum) {
    return _mm256_fmadd_pd(x, y, sum);
  }
  static Register add(Register x, Register y) { return _mm256_add_pd(x, y); }
  static void store(double* p, Register x) { _mm256_storeu_pd(p, x); }
  static __m256i first(int64_t count) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(longOnes + 4 - count));
  }
  static Register loadFirst(const double* p, int64_t count) {
    return _mm256_maskload_pd(p, first(count));
  }
  static void storeFirst(double* p, Register x, int64_t count) {
    _mm256_maskstore_pd(p, first(count), x);
  }
  static void transpose(Register* block) {
    const Register low0 = _mm256_unpacklo_pd(block[0], block[1]);
    const Register high0 = _mm256_unpackhi_pd(block[0], block[1]);
    const Register low1 = _mm256_unpacklo_pd(block[2], block[3]);
    const Register high1 = _mm256_unpackhi_pd(block[2], block[3]);
    block[0] = _mm256_permute2f128_pd(low0, low1, 0x20);
    block[1] = _mm256_permute2f128_pd(high0, high1, 0x20);
    block[2] = _mm256_permute2f128_pd(low0, low1, 0x31);
    block[3] = _mm256_permute2f128_pd(high0, high1, 0x31);
  }
};

constexpr TileKernel<float> floatKernel = kernelOf<Avx2Float>("AVX2");
constexpr TileKernel<double> doubleKernel = kernelOf<Avx2Double>("AVX2");

}  // namespace

const TileKernel<float>& avx2KernelFloat() { return floatKernel; }
const TileKernel<double>& avx2KernelDouble() { return doubleKernel; }

}  // namespace torchformer::core
