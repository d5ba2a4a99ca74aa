#pragma once

#include <c10/util/FunctionRef.h>

#include <cstdint>

#include "core/product/tile_kernel.h"

// Matrix products by our own kernels: c = a b for float32 and float64 on the CPU.

namespace torchformer::core {

/// A finished part of a product that is still in the cache.
template <typename T>
struct FinishedTile {
  T* data;
  int64_t stride;
  int64_t row, column;  // of its first element, in the product
  int64_t rows, columns;
};

/// What is done to each part of a product once its sums are complete: a bias, an activation, ...
/// Called on several threads, once for every element, in any order.
template <typename T>
using Finish = c10::function_ref<void(const FinishedTile<T>&)>;

/// W: the elements of a packed b, see TileWork.
template <typename T, typename W = T>
struct TiledProduct {
  int64_t rows, depth, columns;
  Strided<T> a;  // [rows, depth]
  Strided<T> b;  // [depth, columns]; not read if it is packed
  const W* packedB = nullptr;
  T* c = nullptr;  // [rows, columns]
  int64_t cStride = 0;
  bool accumulates = false;  // c += a b
  const Finish<T>* finish = nullptr;
  T* rowSums = nullptr;  // [rows], becomes the sums of the rows of a; not without columns
};

/// Computes it on all threads. The bits of an element depend on its row of a, its column of b and
/// their length alone: not on the other rows, on the threads or on the kernel.
template <typename T>
void multiplyTiled(const TileKernel<T>& kernel, const TiledProduct<T>& product);

/// The same for a packed b of bits of bfloat16: float panels that were narrowed.
void multiplyBfloat16(const TileKernel<float>& kernel,
                      const TiledProduct<float, uint16_t>& product);

/// Number of elements of a packed b [depth, columns].
template <typename T>
int64_t packedSize(const TileKernel<T>& kernel, int64_t depth, int64_t columns);

/// Packs b [depth, columns] for any number of products.
template <typename T>
void packForProducts(const TileKernel<T>& kernel, const Strided<T>& b, int64_t depth,
                     int64_t columns, T* packed);

}  // namespace torchformer::core
