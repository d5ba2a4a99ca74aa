#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/support/inline.h"

// Loops over rows that the compiler turns into vector instructions.
//
// The package is built once for all x86-64 processors. A function marked TF_VECTORIZED is compiled
// several times, for plain x86-64, for AVX2 and for AVX-512, and the loader picks the copy that
// fits the processor. The copies are for x86-64 levels, which denote sets of instructions:
// `arch=haswell` would be picked only on Haswell processors. Functions that such a function calls
// must be inlined (TF_INLINE), otherwise the call would go to a copy for plain x86-64. Sums in such
// loops need `#pragma omp simd reduction`, which allows the compiler to reorder additions.

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define TF_VECTORIZED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TF_VECTORIZED
#endif

#define TF_INLINE_LAMBDA __attribute__((always_inline))

namespace torchformer::core {

/// exp(x) for x of at most 88 within 2 units in the last place, 0 below -87.7; branch-free, so that
/// loops with it are vectorized. Cody and Waite's reduction to |r| <= ln(2)/2, then a polynomial.
TF_INLINE float vectorExp(float x) {
  constexpr float log2e = 1.44269504088896341F;
  constexpr float ln2High = 0.693359375F;
  constexpr float ln2Low = -2.12194440e-4F;
  // Adding 1.5 * 2^23 rounds to the nearest integer, which is then in the lowest bits.
  constexpr float roundingShift = 12582912.0F;
  // -127 ln(2): for the exponent -127 the bits of the power are those of 0.
  constexpr float lowest = -88.0296919F;
  const float clamped = x < lowest ? lowest : x;
  const float shifted = clamped * log2e + roundingShift;
  const float n = shifted - roundingShift;
  const float r = (clamped - n * ln2High) - n * ln2Low;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const uint32_t power = (std::bit_cast<uint32_t>(shifted) << 23) + (127U << 23);
  return p * std::bit_cast<float>(power);
}

TF_INLINE double vectorExp(double x) { return std::exp(x); }

}  // namespace torchformer::core
