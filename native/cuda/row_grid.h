#pragma once

#include <cstdint>

#include "platform.h"

// The grid of elementwise kernels that need the row of each element: a thread processes several
// elements of a row; rows are distributed over blocks in y, whose number is limited, so a block may
// have several rows.

namespace torchformer::cuda {

constexpr int rowGridThreads = 128;

/// For `width` elements per thread.
inline dim3 rowGrid(int64_t rows, int64_t columns, int width) {
  constexpr int64_t mostRowBlocks = 32768;
  const auto perBlock = int64_t{rowGridThreads} * width;
  return dim3(static_cast<unsigned>((columns + perBlock - 1) / perBlock),
              static_cast<unsigned>(rows < mostRowBlocks ? rows : mostRowBlocks));
}

/// The first column of this thread.
TF_DEVICE int64_t columnInRowGrid(int width) {
  return (int64_t{blockIdx.x} * rowGridThreads + threadIdx.x) * width;
}

}  // namespace torchformer::cuda
