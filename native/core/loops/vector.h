#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/support/inline.h"

// Vectors of numbers as types, for loops whose registers are chosen by hand.
//
// A function whose vectors have to fit the processor has a definition for each kind of processor,
// marked TF_PLAIN, TF_AVX2 or TF_AVX512, which calls a template (TF_INLINE) with the size of its
// vectors in bytes: 16, 32 or 64. `widestVectors` tells at run time which of them to use.

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define TF_HAS_WIDE_VECTORS 1
// Levels of x86-64, as in simd.h.
#define TF_AVX2 __attribute__((target("arch=x86-64-v3")))
#define TF_AVX512 __attribute__((target("arch=x86-64-v4")))
// Functions that pass vectors are all inlined, so the warning about how they are passed is vain.
#pragma GCC diagnostic ignored "-Wpsabi"
#else
#define TF_HAS_WIDE_VECTORS 0
#endif
#define TF_PLAIN

namespace torchformer::core {

/// The number of bytes of the widest vectors of this processor: 16, 32 or 64.
inline int widestVectors() {
#if TF_HAS_WIDE_VECTORS
  if (__builtin_cpu_supports("x86-64-v4")) return 64;
  if (__builtin_cpu_supports("x86-64-v3")) return 32;
#endif
  return 16;
}

template <typename Element, int size>
struct VectorType {
  using type [[gnu::vector_size(size * sizeof(Element))]] = Element;
};

/// A vector of `bytes` bytes, with what goes with each of its lanes.
template <typename T, int bytes>
struct Lanes {
  static constexpr int size = bytes / static_cast<int>(sizeof(T));
  using Vector = typename VectorType<T, size>::type;
  /// A signed integer as wide as T in each lane: also what comparisons of vectors give.
  using Integer = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  using Integers = typename VectorType<Integer, size>::type;
  using Bits = typename VectorType<uint32_t, size>::type;
  using SignedBits = typename VectorType<int32_t, size>::type;
  using Bytes = typename VectorType<uint8_t, size>::type;
};

template <typename Vector, typename Element>
TF_INLINE Vector loadVector(const Element* from) {
  Vector vector;
  __builtin_memcpy(&vector, from, sizeof(Vector));
  return vector;
}

template <typename Vector, typename Element>
TF_INLINE void storeVector(Element* to, const Vector& vector) {
  __builtin_memcpy(to, &vector, sizeof(Vector));
}

/// 2^x for x of at most 1, within 2 units in the last place; 0 below -126.5, NaN for NaN.
template <int bytes>
TF_INLINE typename Lanes<float, bytes>::Vector vectorExp2(
    const typename Lanes<float, bytes>::Vector& given) {
  using Vector = typename Lanes<float, bytes>::Vector;
  using Integers = typename Lanes<float, bytes>::Integers;
  // Adding 1.5 * 2^23 rounds to the nearest integer, which is then in the lowest bits.
  constexpr float roundingShift = 12582912.0F;
  constexpr int32_t exponentOfOne = 127 << 23;
  constexpr float lowest = -127.0F;
  const Vector x = given < lowest ? Vector{} + lowest : given;
  const Vector shifted = x + roundingShift;
  const Vector r = x - (shifted - roundingShift);
  // The polynomial of exp2f in Cephes (Moshier), for |r| <= 1/2.
  Vector p = r * 1.535336188319500e-4F + 1.339887440266574e-3F;
  p = p * r + 9.618437357674640e-3F;
  p = p * r + 5.550332471162809e-2F;
  p = p * r + 2.402264791363012e-1F;
  p = p * r + 6.931472028550421e-1F;
  p = p * r + 1.0F;
  // For -127 these are the bits of 0.
  const Integers power = (reinterpret_cast<Integers>(shifted) << 23) + exponentOfOne;
  return p * reinterpret_cast<Vector>(power);
}

/// The same in float64, by the C library: its exp2 is newer than the oldest systems.
template <int bytes>
TF_INLINE typename Lanes<double, bytes>::Vector vectorExp2(
    const typename Lanes<double, bytes>::Vector& x) {
  constexpr double ln2 = 0.69314718055994530942;
  typename Lanes<double, bytes>::Vector result;
  for (int i = 0; i < Lanes<double, bytes>::size; ++i) result[i] = std::exp(x[i] * ln2);
  return result;
}

/// The first or second half of a0 b0 a1 b1 ...
template <typename Vector, int first, int... lane>
TF_INLINE Vector interleaved(const Vector& a, const Vector& b,
                             std::integer_sequence<int, lane...>) {
  constexpr int size = sizeof...(lane);
  return __builtin_shufflevector(a, b, (first + lane / 2 + (lane % 2) * size)...);
}

/// Transposes a matrix of as many rows as a row has lanes.
template <typename T, int bytes>
TF_INLINE void transposeLanes(
    typename Lanes<T, bytes>::Vector (&rows)[static_cast<size_t>(Lanes<T, bytes>::size)]) {
  using Vector = typename Lanes<T, bytes>::Vector;
  constexpr int size = Lanes<T, bytes>::size;
  constexpr auto all = std::make_integer_sequence<int, size>();
  Vector other[size];
  // Each round moves one bit of a row's number to its column: after log2(size) rounds, all.
#pragma GCC unroll 4
  for (int done = 1; done < size; done *= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < size / 2; ++i) {
      other[2 * i] = interleaved<Vector, 0>(rows[i], rows[i + size / 2], all);
      other[2 * i + 1] = interleaved<Vector, size / 2>(rows[i], rows[i + size / 2], all);
    }
#pragma GCC unroll 16
    for (int i = 0; i < size; ++i) rows[i] = other[i];
  }
}

}  // namespace torchformer::core
