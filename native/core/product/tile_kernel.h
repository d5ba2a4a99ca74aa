#pragma once

#include <cstdint>

// The innermost loops of matrix products, one implementation for each set of instructions.
//
// A product c = a b is cut into tiles of a few rows by one panel of columns, small enough that the
// sums of a tile stay in registers. Both factors are packed first, in panels that hold the elements
// in the order in which a tile reads them:
//
//   a, panels of `rows`:     element (row, k) of a panel is at [k * rows + row]
//   b, panels of `columns`:  element (k, column) of a panel is at [k * columns + column]
//
// Every element of c is one chain of fused multiply-adds along k, in increasing order. So its bits
// do not depend on the number of rows or columns, on the place in a tile, or on the kernel.
//
// These files are compiled for instructions that the processor may lack: they must include nothing
// with inline functions that other files use too, because the linker keeps one copy of those.

namespace torchformer::core {

/// A matrix in memory, with any strides.
template <typename T>
struct Strided {
  const T* data;
  int64_t rowStride;
  int64_t columnStride;
};

/// c (+)= a b for some rows of one panel of a and some neighboring panels of b, whose elements are
/// of type W: T itself, or a narrower one that is widened on the way, see TileKernel.
template <typename T, typename W = T>
struct TileWork {
  const T* a;  // the panel
  const W* b;  // the first panel
  T* c;        // the first element of the result
  int64_t bPanelStride;
  int64_t cStride;
  int64_t depth;    // length of the sums
  int64_t rows;     // at most TileKernel::rows
  int64_t columns;  // at most TileKernel::panelsAtOnce(rows) panels; the last may be incomplete
  bool accumulates;
  // The part of the next panel of b that this tile fetches into the second cache, `nextStep` bytes
  // for each step of the depth.
  const W* next;
  int64_t nextStep;
};

template <typename T>
struct TileKernel {
  const char* name;
  int64_t rows;     // of a panel of a
  int64_t columns;  // of a panel of b
  void (*multiply)(const TileWork<T>& work);
  /// The same for the bits of bfloat16 numbers, which take half the memory. Null for double.
  void (*multiplyBfloat16)(const TileWork<T, uint16_t>& work);
  /// How many panels of b a tile of so many rows should cover: a tile of few rows needs several, or
  /// it has too few sums at a time to keep the multipliers busy.
  int64_t (*panelsAtOnce)(int64_t rows);
  /// Writes `count` rows of `source` as a panel of a, with depth columns. Writes up to
  /// `overrun` elements beyond the panel.
  void (*packRows)(const Strided<T>& source, int64_t count, int64_t depth, T* panel);
  /// Writes `count` columns of `source` as a panel of b, filled up with zeros.
  void (*packColumns)(const Strided<T>& source, int64_t count, int64_t depth, T* panel);
  /// Sums the first `count` rows of a panel of a over its depth, to or onto `sums`, in an
  /// order that depends on the depth alone.
  void (*sumRows)(const T* panel, int64_t count, int64_t depth, T* sums, bool accumulates);
  static constexpr int64_t overrun = 16;
};

/// The kernel for this processor; null if it has none of the sets of instructions.
template <typename T>
const TileKernel<T>* tileKernel();
template <>
const TileKernel<float>* tileKernel<float>();
template <>
const TileKernel<double>* tileKernel<double>();

const TileKernel<float>& avx2KernelFloat();
const TileKernel<double>& avx2KernelDouble();
const TileKernel<float>& avx512KernelFloat();
const TileKernel<double>& avx512KernelDouble();

}  // namespace torchformer::core
