#pragma once

#include "platform.h"

// Sums and maxima over the threads of a group: a warp, or a block of several warps. Every thread
// of the group gets the result, the same bits in every run.

namespace torchformer::cuda {

struct Sum {
  template <typename T>
  TF_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};

struct Maximum {
  template <typename T>
  TF_DEVICE T operator()(T a, T b) const {
    // NaN wins, so that a finite maximum does not hide it.
    return a > b || a != a ? a : b;
  }
};

template <typename T, typename Operation>
TF_DEVICE T reducedInWarp(T value, Operation operation) {
#pragma unroll
  for (int mask = warpSize_ / 2; mask > 0; mask /= 2) {
    value = operation(value, __shfl_xor_sync(0xFFFFFFFFU, value, mask));
  }
  return value;
}

/// A group of `Threads` threads, a multiple of 32, that works on one row. With more than a warp,
/// the block is the group and has exactly that many threads in x.
template <int Threads>
struct RowGroup {
  static constexpr int warps = Threads / warpSize_;

  template <typename T, typename Operation>
  TF_DEVICE static T reduced(T value, Operation operation) {
    value = reducedInWarp(value, operation);
    if constexpr (warps > 1) {
      __shared__ T parts[warps];
      const int thread = static_cast<int>(threadIdx.x);
      if (thread % warpSize_ == 0) parts[thread / warpSize_] = value;
      __syncthreads();
      value = parts[0];
      for (int warp = 1; warp < warps; ++warp) value = operation(value, parts[warp]);
      // The next call writes to the same addresses.
      __syncthreads();
    }
    return value;
  }

  template <typename T>
  TF_DEVICE static T sum(T value) {
    return reduced(value, Sum{});
  }
};

}  // namespace torchformer::cuda
