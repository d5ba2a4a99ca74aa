#pragma once

#include "core/product/int8_kernel.h"

// The loops of an 8-bit kernel, for any set of instructions. `V` describes vectors of it:
//   Sums, Numbers, width (of float and int32 lanes)
//   zero(), load(p), multiplyAdd(weights, a, sums): a points to four activations
//   finish(sums, rowSum, rowScale, columnScale): floats; add(x, y), relu(x), loadFloats(p)
//   store(p, x), loadFirst(p, n), storeFirst(p, x, n)
//   maxRows, maxSums, as in tile_loops.h
// All names are in an anonymous namespace: each kernel file has its own copy.

namespace torchformer::core {
namespace {

constexpr int vectorsOfInt8Panel = 2;

template <typename V, int Rows, int Panels>
void multiplyInt8Tile(const Int8Work& work) {
  constexpr int vectors = Panels * vectorsOfInt8Panel;
  constexpr int64_t panelColumns = vectorsOfInt8Panel * V::width;
  typename V::Sums sums[Rows][vectors];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) sums[r][v] = V::zero();
  }
  const int8_t* a = work.a;
  const uint8_t* b = work.b;
  const int64_t panelStride = work.groups * panelColumns * 4;
  for (int64_t group = 0; group < work.groups; ++group) {
    typename V::Numbers weights[vectors];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      weights[v] = V::load(b + (v / vectorsOfInt8Panel) * panelStride +
                           (v % vectorsOfInt8Panel) * V::width * 4);
    }
    if constexpr (Panels == 1) {
      const auto* const next = work.next + group * work.nextStep;
      __builtin_prefetch(next, 0, 2);
      if (work.nextStep > 64) __builtin_prefetch(next + 64, 0, 2);
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) {
        sums[r][v] = V::multiplyAdd(weights[v], a + r * work.aStride, sums[r][v]);
      }
    }
    a += 4;
    b += panelColumns * 4;
  }
  const Int8Finish& finish = work.finish;
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      const int64_t column = v * V::width;
      int64_t count = work.columns - column;
      count = count < 0 ? 0 : count > V::width ? V::width : count;
      if (count == 0) continue;
      auto result = V::finish(sums[r][v], work.rowSum[r], work.rowScale[r],
                              V::loadFirst(finish.columnScale + column, count));
      if (finish.bias != nullptr)
        result = V::add(result, V::loadFirst(finish.bias + column, count));
      if (finish.relu) result = V::relu(result);
      float* const place = work.output + r * work.outputStride + column;
      if (finish.adds) result = V::add(V::loadFirst(place, count), result);
      V::storeFirst(place, result, count);
    }
  }
}

template <typename V>
int64_t int8PanelsAtOnce(int64_t rows) {
  if (rows * 4 * vectorsOfInt8Panel <= V::maxSums) return 4;
  if (rows * 2 * vectorsOfInt8Panel <= V::maxSums) return 2;
  return 1;
}

template <typename V, int Rows>
void multiplyInt8Rows(const Int8Work& work) {
  constexpr int64_t panelColumns = vectorsOfInt8Panel * V::width;
  constexpr int sums = Rows * vectorsOfInt8Panel;
  if constexpr (4 * sums <= V::maxSums) {
    if (work.columns > 3 * panelColumns) return multiplyInt8Tile<V, Rows, 4>(work);
  }
  if constexpr (2 * sums <= V::maxSums) {
    if (work.columns > panelColumns) return multiplyInt8Tile<V, Rows, 2>(work);
  }
  multiplyInt8Tile<V, Rows, 1>(work);
}

template <typename V, int Rows = V::maxRows>
void multiplyInt8(const Int8Work& work) {
  if (work.rows == Rows) return multiplyInt8Rows<V, Rows>(work);
  if constexpr (Rows > 1) multiplyInt8<V, Rows - 1>(work);
}

template <typename V>
constexpr Int8Kernel int8KernelOf(const char* name) {
  return {name,
          V::maxRows,
          vectorsOfInt8Panel * V::width,
          V::mostWeight,
          V::offset,
          multiplyInt8<V>,
          int8PanelsAtOnce<V>};
}

}  // namespace
}  // namespace torchformer::core
