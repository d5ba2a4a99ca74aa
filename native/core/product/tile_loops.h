#pragma once

#include "core/product/tile_kernel.h"

// The loops of a tile kernel, for any set of instructions. `V` describes vectors of it:
//   Element, Register, width
//   zero(), load(p), broadcast(p), multiplyAdd(x, y, sum), add(x, y), store(p, x)
//   loadFirst(p, n), storeFirst(p, x, n): the first n elements, 0 <= n <= width; others are not
//   touched, and read as zero
//   transpose(block): `width` vectors as rows of a square, in place
//   maxRows: of a tile; maxSums: how many registers may hold sums
//   isWidening: whether load also takes bits of bfloat16
// All names are in an anonymous namespace: each kernel file has its own copy, compiled for its
// instructions.

namespace torchformer::core {
namespace {

/// Vectors in a row of a panel of b.
constexpr int vectorsOfPanel = 2;

template <typename V>
constexpr int64_t panelColumns = vectorsOfPanel * V::width;

constexpr int64_t cacheLine = 64;

/// Into the first cache, or into the second; never a fault, whatever the address.
template <typename T>
void prefetchSoon(const T* address) {
  __builtin_prefetch(address, 0, 3);
}
template <typename T>
void prefetchLater(const T* address) {
  __builtin_prefetch(address, 0, 2);
}

template <typename V, typename W, int Rows, int Panels>
void multiplyTile(const TileWork<typename V::Element, W>& work, int64_t panelRows) {
  using T = typename V::Element;
  using Register = typename V::Register;
  constexpr int vectors = Panels * vectorsOfPanel;
  Register sums[Rows][vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) sums[r][v] = V::zero();
  }
  // The tile is written at the end, when waiting for memory would keep the multipliers idle.
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) prefetchSoon(work.c + r * work.cStride + v * V::width);
  }
  const auto* next = reinterpret_cast<const char*>(work.next);
  const T* a = work.a;
  const W* b = work.b;
  const int64_t panelStride = work.bPanelStride;
  for (int64_t k = 0; k < work.depth; ++k) {
    Register columns[vectors];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      columns[v] =
          V::load(b + (v / vectorsOfPanel) * panelStride + (v % vectorsOfPanel) * V::width);
    }
    if constexpr (Panels == 1) {
      prefetchLater(next + k * work.nextStep);
      if (work.nextStep > cacheLine) prefetchLater(next + k * work.nextStep + cacheLine);
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const Register x = V::broadcast(a + r);
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) sums[r][v] = V::multiplyAdd(x, columns[v], sums[r][v]);
    }
    a += panelRows;
    b += panelColumns<V>;
  }
  T* c = work.c;
  if (work.columns == vectors * V::width) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) {
        T* const place = c + v * V::width;
        V::store(place, work.accumulates ? V::add(V::load(place), sums[r][v]) : sums[r][v]);
      }
      c += work.cStride;
    }
    return;
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      T* const place = c + v * V::width;
      int64_t count = work.columns - v * V::width;
      count = count < 0 ? 0 : count > V::width ? V::width : count;
      V::storeFirst(place,
                    work.accumulates ? V::add(V::loadFirst(place, count), sums[r][v]) : sums[r][v],
                    count);
    }
    c += work.cStride;
  }
}

/// Tiles of 1 to V::maxRows rows.
template <typename V>
int64_t panelsAtOnce(int64_t rows) {
  if (rows * 4 * vectorsOfPanel <= V::maxSums) return 4;
  if (rows * 2 * vectorsOfPanel <= V::maxSums) return 2;
  return 1;
}

template <typename V, typename W, int Rows>
void multiplyRows(const TileWork<typename V::Element, W>& work) {
  constexpr int sums = Rows * vectorsOfPanel;
  if constexpr (4 * sums <= V::maxSums) {
    if (work.columns > 3 * panelColumns<V>) return multiplyTile<V, W, Rows, 4>(work, V::maxRows);
  }
  if constexpr (2 * sums <= V::maxSums) {
    if (work.columns > panelColumns<V>) return multiplyTile<V, W, Rows, 2>(work, V::maxRows);
  }
  multiplyTile<V, W, Rows, 1>(work, V::maxRows);
}

template <typename V, typename W, int Rows = V::maxRows>
void multiply(const TileWork<typename V::Element, W>& work) {
  if (work.rows == Rows) return multiplyRows<V, W, Rows>(work);
  if constexpr (Rows > 1) multiply<V, W, Rows - 1>(work);
}

/// `width` elements of each of up to `width` lines, `stride` apart, at `to`: element (line, k) at
/// [k * size + line]. Absent lines become zeros.
template <typename V>
void packBlock(const typename V::Element* from, int64_t stride, int64_t present,
               typename V::Element* to, int64_t size, int64_t lines) {
  typename V::Register block[V::width];
#pragma GCC unroll 16
  for (int i = 0; i < V::width; ++i)
    block[i] = i < present ? V::load(from + i * stride) : V::zero();
  V::transpose(block);
  for (int i = 0; i < V::width; ++i) {
    if (lines == V::width) {
      V::store(to + i * size, block[i]);
    } else {
      V::storeFirst(to + i * size, block[i], lines);
    }
  }
}

/// Writes `count` lines of `source`, each `depth` elements long, as a panel of `size` lines:
/// element (line, k) at [k * size + line]. Lines from `count` on become zeros.
template <typename V>
void packLines(const typename V::Element* source, int64_t lineStride, int64_t depthStride,
               int64_t count, int64_t size, int64_t depth, typename V::Element* panel) {
  using T = typename V::Element;
  constexpr int64_t width = V::width;
  for (int64_t line = 0; line < size; line += width) {
    const T* const from = source + line * lineStride;
    T* const to = panel + line;
    const int64_t left = count - line;
    const int64_t present = left < 0 ? 0 : left < width ? left : width;
    // Vectors that are longer than a panel's lines overwrite the beginning of the next k, which is
    // written later. That is faster than storing parts of vectors.
    const int64_t lines = size < width || size - line >= width ? width : size - line;
    int64_t k = 0;
    if (lineStride == 1) {
      for (; k < depth; ++k) {
        const auto x = present == width ? V::load(from + k * depthStride)
                                        : V::loadFirst(from + k * depthStride, present);
        if (lines == width) {
          V::store(to + k * size, x);
        } else {
          V::storeFirst(to + k * size, x, lines);
        }
      }
    } else if (depthStride == 1) {
      for (; k + width <= depth; k += width) {
        packBlock<V>(from + k, lineStride, present, to + k * size, size, lines);
      }
    }
    for (; k < depth; ++k) {
      for (int64_t i = 0; i < width && line + i < size; ++i) {
        to[k * size + i] = i < present ? from[i * lineStride + k * depthStride] : T(0);
      }
    }
  }
}

template <typename V>
void packRows(const Strided<typename V::Element>& source, int64_t count, int64_t depth,
              typename V::Element* panel) {
  packLines<V>(source.data, source.rowStride, source.columnStride, count, V::maxRows, depth, panel);
}

template <typename V>
void packColumns(const Strided<typename V::Element>& source, int64_t count, int64_t depth,
                 typename V::Element* panel) {
  packLines<V>(source.data, source.columnStride, source.rowStride, count, panelColumns<V>, depth,
               panel);
}

template <typename V>
void sumRows(const typename V::Element* panel, int64_t count, int64_t depth,
             typename V::Element* sums, bool accumulates) {
  for (int64_t row = 0; row < count; row += V::width) {
    const int64_t left = count - row;
    const int64_t present = left < V::width ? left : V::width;
    // Four sums, or each addition would wait for the one before.
    typename V::Register parts[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        parts[i] = V::add(parts[i], V::load(panel + (k + i) * V::maxRows + row));
      }
    }
    for (; k < depth; ++k) parts[0] = V::add(parts[0], V::load(panel + k * V::maxRows + row));
    auto sum = V::add(V::add(parts[0], parts[1]), V::add(parts[2], parts[3]));
    if (accumulates) sum = V::add(V::loadFirst(sums + row, present), sum);
    V::storeFirst(sums + row, sum, present);
  }
}

template <typename V>
constexpr TileKernel<typename V::Element> kernelOf(const char* name) {
  using T = typename V::Element;
  TileKernel<T> kernel{name,           V::maxRows,     panelColumns<V>,
                       multiply<V, T>, nullptr,        panelsAtOnce<V>,
                       packRows<V>,    packColumns<V>, sumRows<V>};
  if constexpr (V::isWidening) kernel.multiplyBfloat16 = multiply<V, uint16_t>;
  return kernel;
}

}  // namespace
}  // namespace torchformer::core
