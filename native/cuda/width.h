#pragma once

#include <cstdint>

#include "element.h"

// Reading and writing several elements of a row at once.

namespace torchformer::cuda {

/// `Width` elements in the accumulation type.
template <int Width, typename T>
TF_DEVICE Vector<Compute<T>, Width> loaded(const T* from) {
  const auto raw = *reinterpret_cast<const Vector<T, Width>*>(from);
  Vector<Compute<T>, Width> result;
#pragma unroll
  for (int i = 0; i < Width; ++i) result.values[i] = widened(raw.values[i]);
  return result;
}

template <typename T, int Width>
TF_DEVICE void store(T* to, const Vector<T, Width>& values) {
  *reinterpret_cast<Vector<T, Width>*>(to) = values;
}

/// Whether rows of `columns` elements at these addresses can be read `Width` at a time. A vector of
/// 4 elements of any type has at most 32 bytes; null pointers are ignored.
template <int Width, typename... Pointers>
bool fitsWidth(int64_t columns, const Pointers*... pointers) {
  constexpr uintptr_t widest = 8 * Width;
  return columns % Width == 0 && ((reinterpret_cast<uintptr_t>(pointers) % widest == 0) && ...);
}

}  // namespace torchformer::cuda
