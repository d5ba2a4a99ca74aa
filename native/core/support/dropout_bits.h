#pragma once

#include <cstdint>

#include "core/support/inline.h"

// Random bits that are computed from their position instead of drawn in sequence.
//
// A dropout mask made of them depends only on a seed, a row and a column: not on the device, the
// number of threads, the order of the work, or how the rows are split into chunks. Backward passes
// recompute it instead of storing it.

namespace torchformer::core {

/// Which elements of a row are kept by a dropout with probability p.
class RowDropout {
 public:
  /// `row` counts within the call; `threshold` is 2^32 p (see dropThreshold).
  TF_INLINE RowDropout(uint64_t seed, uint64_t row, uint32_t threshold) : threshold_(threshold) {
    // The finalizer of splitmix64 (Steele et al. 2014).
    uint64_t z = seed + (row + 1) * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    z ^= z >> 31;
    low_ = static_cast<uint32_t>(z);
    high_ = static_cast<uint32_t>(z >> 32);
  }

  TF_INLINE bool keeps(uint32_t column) const {
    // Two rounds of a 32-bit mixer; the second key between them keeps rows from being shifted
    // copies of each other.
    uint32_t h = column * 0x9E3779B1U + low_;
    h = (h ^ (h >> 16)) * 0x21F0AAADU;
    h = (h ^ (h >> 15)) + high_;
    h = h * 0x735A2D97U;
    h = (h ^ (h >> 16)) * 0x21F0AAADU;
    h ^= h >> 15;
    return h >= threshold_;
  }

 private:
  uint32_t low_;
  uint32_t high_;
  uint32_t threshold_;
};

/// The threshold for a probability: 2^32 p, rounded. Not for p = 1, where all elements are zero.
uint32_t dropThreshold(double p);

/// The factor of the kept elements, 1 / (1 - p); 0 for p = 1, where there are none.
double survivorScale(double p);

}  // namespace torchformer::core
