// Tiles of 14 rows by two vectors of 16 floats (or 8 doubles): 28 of the 32 registers hold sums,
// and two multipliers that take four cycles are never idle.

#include <immintrin.h>

#include "core/product/tile_loops.h"

namespace torchformer::core {
namespace {

struct Avx512Float {
  using Element = float;
  using Register = __m512;
  static constexpr int width = 16;
  static constexpr int maxRows = 14;
  static constexpr int maxSums = 28;
  static constexpr bool isWidening = true;

  static Register zero() { return _mm512_setzero_ps(); }
  static Register load(const float* p) { return _mm512_loadu_ps(p); }
  static Register load(const uint16_t* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static Register broadcast(const float* p) { return _mm512_set1_ps(*p); }
  static Register multiplyAdd(Register x, Register y, Register sum) {
    return _mm512_fmadd_ps(x, y, sum);
  }
  static Register add(Register x, Register y) { return _mm512_add_ps(x, y); }
  static void store(float* p, Register x) { _mm512_storeu_ps(p, x); }
  static __mmask16 first(int64_t count) { return static_cast<__mmask16>((1U << count) - 1U); }
  static Register loadFirst(const float* p, int64_t count) {
    return _mm512_maskz_loadu_ps(first(count), p);
  }
  static void storeFirst(float* p, Register x, int64_t count) {
    _mm512_mask_storeu_ps(p, first(count), x);
  }
  static void transpose(Register* block) {
    Register pairs[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
      pairs[i] = _mm512_unpacklo_ps(block[i], block[i + 1]);
      pairs[i + 1] = _mm512_unpackhi_ps(block[i], block[i + 1]);
    }
    // Four rows at a time: quad[4 g + c] has column c of the rows 4 g to 4 g + 3 in each lane.
    Register quads[16];
#pragma GCC unroll 4
    for (int g = 0; g < 16; g += 4) {
      quads[g] = joined(pairs[g], pairs[g + 2], false);
      quads[g + 1] = joined(pairs[g], pairs[g + 2], true);
      quads[g + 2] = joined(pairs[g + 1], pairs[g + 3], false);
      quads[g + 3] = joined(pairs[g + 1], pairs[g + 3], true);
    }
    // Lane l of quads[4 g + c] belongs to row 4 l + c, at the columns 4 g to 4 g + 3.
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const Register low = _mm512_shuffle_f32x4(quads[c], quads[4 + c], 0x44);
      const Register high = _mm512_shuffle_f32x4(quads[c], quads[4 + c], 0xee);
      const Register low2 = _mm512_shuffle_f32x4(quads[8 + c], quads[12 + c], 0x44);
      const Register high2 = _mm512_shuffle_f32x4(quads[8 + c], quads[12 + c], 0xee);
      block[c] = _mm512_shuffle_f32x4(low, low2, 0x88);
      block[4 + c] = _mm512_shuffle_f32x4(low, low2, 0xdd);
      block[8 + c] = _mm512_shuffle_f32x4(high, high2, 0x88);
      block[12 + c] = _mm512_shuffle_f32x4(high, high2, 0xdd);
    }
  }

 private:
  static Register joined(Register x, Register y, bool high) {
    const __m512d a = _mm512_castps_pd(x);
    const __m512d b = _mm512_castps_pd(y);
    return _mm512_castpd_ps(high ? _mm512_unpackhi_pd(a, b) : _mm512_unpacklo_pd(a, b));
  }
};

struct Avx512Double {
  using Element = double;
  using Register = __m512d;
  static constexpr int width = 8;
  static constexpr int maxRows = 14;
  static constexpr int maxSums = 28;
  static constexpr bool isWidening = false;

  static Register zero() { return _mm512_setzero_pd(); }
  static Register load(const double* p) { return _mm512_loadu_pd(p); }
  static Register broadcast(const double* p) { return _mm512_set1_pd(*p); }
  static Register multiplyAdd(Register x, Register y, Register sum) {
    return _mm512_fmadd_pd(x, y, sum);
  }
  static Register add(Register x, Register y) { return _mm512_add_pd(x, y); }
  static void store(double* p, Register x) { _mm512_storeu_pd(p, x); }
  static __mmask8 first(int64_t count) { return static_cast<__mmask8>((1U << count) - 1U); }
  static Register loadFirst(const double* p, int64_t count) {
    return _mm512_maskz_loadu_pd(first(count), p);
  }
  static void storeFirst(double* p, Register x, int64_t count) {
    _mm512_mask_storeu_pd(p, first(count), x);
  }
  static void transpose(Register* block) {
    Register pairs[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
      pairs[i] = _mm512_unpacklo_pd(block[i], block[i + 1]);
      pairs[i + 1] = _mm512_unpackhi_pd(block[i], block[i + 1]);
    }
    // Lane l of pairs[2 g + c] belongs to row 2 l + c, at the columns 2 g and 2 g + 1.
#pragma GCC unroll 2
    for (int c = 0; c < 2; ++c) {
      const Register low = _mm512_shuffle_f64x2(pairs[c], pairs[2 + c], 0x44);
      const Register high = _mm512_shuffle_f64x2(pairs[c], pairs[2 + c], 0xee);
      const Register low2 = _mm512_shuffle_f64x2(pairs[4 + c], pairs[6 + c], 0x44);
      const Register high2 = _mm512_shuffle_f64x2(pairs[4 + c], pairs[6 + c], 0xee);
      block[c] = _mm512_shuffle_f64x2(low, low2, 0x88);
      block[2 + c] = _mm512_shuffle_f64x2(low, low2, 0xdd);
      block[4 + c] = _mm512_shuffle_f64x2(high, high2, 0x88);
      block[6 + c] = _mm512_shuffle_f64x2(high, high2, 0xdd);
    }
  }
};

constexpr TileKernel<float> floatKernel = kernelOf<Avx512Float>("AVX-512");
constexpr TileKernel<double> doubleKernel = kernelOf<Avx512Double>("AVX-512");

}  // namespace

const TileKernel<float>& avx512KernelFloat() { return floatKernel; }
const TileKernel<double>& avx512KernelDouble() { return doubleKernel; }

}  // namespace torchformer::core
