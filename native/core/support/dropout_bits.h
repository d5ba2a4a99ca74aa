#pragma once

#include <cstdint>

#include "core/support/inline.h"

// Random bits that are computed from their position instead of drawn in sequence.
//
// A dropout mask made of them depends only on a seed, a row and a column: not on the device, the
// number of threads, the order of the work, or how the rows are split into chunks. Backward passes
// recompute it instead of storing it.

namespace torchformer::core {

/// 64 random bits for a row of a mask.
TF_INLINE uint64_t dropoutRowKey(uint64_t seed, uint64_t row) {
  // The finalizer of splitmix64 (Steele et al. 2014).
  uint64_t z = seed + (row + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

/// 32 random bits for a column of the row with this key: its low and its high half. `Bits`:
/// uint32_t, or a vector of them for several rows.
template <typename Bits>
TF_INLINE Bits dropoutHash(uint32_t column, const Bits& low, const Bits& high) {
  // Two rounds of a 32-bit mixer; the second half between them keeps rows from being shifted
  // copies of each other.
  Bits h = column * 0x9E3779B1U + low;
  h = (h ^ (h >> 16)) * 0x21F0AAADU;
  h = (h ^ (h >> 15)) + high;
  h = h * 0x735A2D97U;
  h = (h ^ (h >> 16)) * 0x21F0AAADU;
  return h ^ (h >> 15);
}

/// Which elements of a row are kept by a dropout with probability p.
class RowDropout {
 public:
  /// `row` counts within the call; `threshold` is 2^32 p (see dropThreshold).
  TF_INLINE RowDropout(uint64_t seed, uint64_t row, uint32_t threshold) : threshold_(threshold) {
    const uint64_t key = dropoutRowKey(seed, row);
    low_ = static_cast<uint32_t>(key);
    high_ = static_cast<uint32_t>(key >> 32);
  }

  TF_INLINE bool keeps(uint32_t column) const {
    return dropoutHash(column, low_, high_) >= threshold_;
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
