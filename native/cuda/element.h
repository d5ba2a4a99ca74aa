#pragma once

#include <limits>

#include "platform.h"

// Elements of tensors in kernels: read as the accumulation type, written rounded.

namespace torchformer::cuda {

/// The element types of the kernels; the enum values have no external meaning.
enum class Element : int { float32, float64, bfloat16, float16 };

/// float for all but double.
template <typename T>
struct ComputeType {
  using type = float;
};
template <>
struct ComputeType<double> {
  using type = double;
};
template <typename T>
using Compute = typename ComputeType<T>::type;

// As constants, because kernels cannot call the functions of std::numeric_limits.
template <typename C>
constexpr C infinity = std::numeric_limits<C>::infinity();
template <typename C>
constexpr C notANumber = std::numeric_limits<C>::quiet_NaN();

#if defined(__CUDACC__)
TF_DEVICE float widened(Bfloat16 value) { return __bfloat162float(value); }
TF_DEVICE float widened(Float16 value) { return __half2float(value); }
#else
TF_DEVICE float widened(Bfloat16 value) { return host::toFloat(value); }
TF_DEVICE float widened(Float16 value) { return host::toFloat(value); }
#endif
TF_DEVICE float widened(float value) { return value; }
TF_DEVICE double widened(double value) { return value; }

template <typename T>
struct Narrow;
template <>
struct Narrow<float> {
  TF_DEVICE static float from(float value) { return value; }
};
template <>
struct Narrow<double> {
  TF_DEVICE static double from(double value) { return value; }
};
#if defined(__CUDACC__)
template <>
struct Narrow<Bfloat16> {
  TF_DEVICE static Bfloat16 from(float value) { return __float2bfloat16(value); }
};
template <>
struct Narrow<Float16> {
  TF_DEVICE static Float16 from(float value) { return __float2half(value); }
};
#else
template <>
struct Narrow<Bfloat16> {
  TF_DEVICE static Bfloat16 from(float value) { return host::toBfloat16(value); }
};
template <>
struct Narrow<Float16> {
  TF_DEVICE static Float16 from(float value) { return host::toFloat16(value); }
};
#endif

/// `value` as a T, rounded to the nearest.
template <typename T, typename C>
TF_DEVICE T narrowed(C value) {
  return Narrow<T>::from(value);
}

/// Several elements that are read and written together; a tensor's data must be aligned to it.
template <typename T, int Count>
struct alignas(sizeof(T) * Count) Vector {
  T values[Count];
};

}  // namespace torchformer::cuda
