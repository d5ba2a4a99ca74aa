#pragma once

#include <cstdint>

// The innermost loops of products of 8-bit whole numbers, one implementation for each set of
// instructions, chosen like those of tile_kernel.h.
//
// Weights are stored with an offset, as unsigned numbers, because the instructions multiply
// unsigned by signed ones; what the offset adds to a sum is `offset` times the sum of the
// activations, and is subtracted again. Sums are exact, so their order is of no account.
//
// Weights are packed in panels of `columns` output features, four input features of one output
// feature side by side: element (k, column) of a panel is at
// [(k / 4 * columns + column) * 4 + k % 4].

namespace torchformer::core {

/// What follows the sums.
struct Int8Finish {
  const float* columnScale;  // of the output features
  const float* bias;         // null: none
  bool relu;
  bool adds;  // to what is in the output
};

/// Some rows of activations times some neighboring panels.
struct Int8Work {
  const int8_t* a;  // [rows][aStride], whole groups of four
  int64_t aStride;
  const float* rowScale;  // [rows]
  const int32_t* rowSum;  // [rows]: offset * the sum of the activations
  const uint8_t* b;       // the first panel
  int64_t groups;         // of four input features
  int64_t rows;           // at most Int8Kernel::rows
  int64_t columns;        // at most panelsAtOnce(rows) panels; the last may be incomplete
  float* output;
  int64_t outputStride;
  // The part of the next panel that this tile fetches into the second cache, `nextStep` bytes for
  // each group.
  const uint8_t* next;
  int64_t nextStep;
  Int8Finish finish;  // its addresses are those of the first column
};

struct Int8Kernel {
  const char* name;
  int64_t rows;     // of a tile
  int64_t columns;  // of a panel
  /// The largest weight: two products of it may be summed in 16 bits on the way.
  int32_t mostWeight;
  int32_t offset;
  void (*multiply)(const Int8Work& work);
  int64_t (*panelsAtOnce)(int64_t rows);
};

const Int8Kernel& avx2Int8Kernel();
const Int8Kernel& vnniInt8Kernel();

}  // namespace torchformer::core
