#pragma once

#include <cstdint>

// How products of all kinds of elements are cut.

namespace torchformer::core {

/// Number of multiplications below which a second thread costs more than it gains.
constexpr int64_t workForThreads = 200'000;

inline int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// How many of `left` panels a tile takes at once, of at most `widest`: kernels have tiles of 4, 2
/// and 1.
inline int64_t panelsTogether(int64_t left, int64_t widest) {
  return left >= 4 && widest >= 4 ? 4 : left >= 2 && widest >= 2 ? 2 : 1;
}

}  // namespace torchformer::core
