// How a product is cut into tiles.
//
// The second factor is packed by all threads together, in pieces that fit the last cache, unless it
// was packed before. Then blocks of rows, each with a range of columns, are handed out one by one
// to the threads, so that a thread that loses its core to another process delays nobody for long.
// A thread packs the rows of its block for itself, into its second cache.
//
// A sum over a large depth is made of sums over parts of it, which are added in order.

#include "core/product/tiled_product.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#include "core/product/panels.h"
#include "core/support/thread_team.h"

namespace torchformer::core {

namespace {

/// The longest sum that a tile keeps in registers. The panels of a tile, 14 by 512 floats and 512
/// by 32, stay in the first two caches.
constexpr int64_t longestSum = 512;

/// Bytes of packed rows of a, for one thread.
constexpr int64_t rowBlockBytes = 256 * 1024;

/// Bytes of b that are packed at a time.
constexpr int64_t packedBytes = 8 * 1024 * 1024;

/// The length of the sums of a product: a depth is cut into parts of almost equal size. A function
/// of the depth alone, because it decides the bits.
int64_t sumLength(int64_t depth) {
  const auto parts = std::max<int64_t>(1, ceilDivide(depth, longestSum));
  return std::max<int64_t>(1, ceilDivide(depth, parts));
}

/// Memory that is used again in the next product; a fresh allocation would cost page faults.
template <typename T>
class Scratch {
 public:
  T* reserve(int64_t count) {
    const auto bytes = static_cast<size_t>(count) * sizeof(T);
    if (bytes > capacity_) {
      memory_.reset();
      capacity_ = 0;
      // Room for all columns of a panel in whole cache lines.
      memory_.reset(::operator new(bytes, std::align_val_t(64)));
      capacity_ = bytes;
    }
    return static_cast<T*>(memory_.get());
  }

 private:
  struct Deleter {
    void operator()(void* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::unique_ptr<void, Deleter> memory_;
  size_t capacity_ = 0;
};

/// A piece of b: some of its columns for a part of the depth.
struct Piece {
  int64_t firstDepth, depth;
  int64_t firstColumn, columns;
};

/// Steps of the depth that are packed for all panels before the next ones, where the lines of a
/// panel are neighbors in memory: a cache line then serves several panels at once.
constexpr int64_t packedSteps = 32;

template <typename T>
Strided<T> partOf(const Strided<T>& matrix, int64_t row, int64_t column) {
  return {matrix.data + row * matrix.rowStride + column * matrix.columnStride, matrix.rowStride,
          matrix.columnStride};
}

template <typename T>
void packPanels(const TileKernel<T>& kernel, const Strided<T>& b, const Piece& piece, T* packed,
                int64_t threads) {
  const auto panels = ceilDivide(piece.columns, kernel.columns);
  const auto pack = [&](int64_t panel, int64_t k, int64_t depth) {
    const auto first = panel * kernel.columns;
    kernel.packColumns(partOf(b, piece.firstDepth + k, piece.firstColumn + first),
                       std::min(kernel.columns, piece.columns - first), depth,
                       packed + first * piece.depth + k * kernel.columns);
  };
  const bool byDepth = b.columnStride == 1;
  const auto parts = byDepth ? ceilDivide(piece.depth, packedSteps) : panels;
  std::atomic<int64_t> next{0};
  onThreads(threads, [&] {
    for (int64_t part; (part = next.fetch_add(1, std::memory_order_relaxed)) < parts;) {
      if (!byDepth) {
        pack(part, 0, piece.depth);
        continue;
      }
      const auto k = part * packedSteps;
      for (int64_t panel = 0; panel < panels; ++panel) {
        pack(panel, k, std::min(packedSteps, piece.depth - k));
      }
    }
  });
}

/// How the rows and columns of a product are divided among threads.
struct Blocks {
  int64_t rowPanels;  // of almost equal size
  int64_t rowBlocks;  // of almost as many row panels
  int64_t columnPanels;
  int64_t columnBlocks;

  int64_t count() const { return rowBlocks * columnBlocks; }
};

/// The start of part `index` of `count` parts of almost equal size.
int64_t startOf(int64_t index, int64_t count, int64_t total) { return index * total / count; }

template <typename T>
Blocks divide(const TileKernel<T>& kernel, int64_t rows, int64_t columns, int64_t threads) {
  Blocks blocks{ceilDivide(rows, kernel.rows), 1, ceilDivide(columns, kernel.columns), 1};
  const auto panelBytes = kernel.rows * longestSum * static_cast<int64_t>(sizeof(T));
  const auto mostPanels = std::max<int64_t>(1, rowBlockBytes / panelBytes);
  blocks.rowBlocks = ceilDivide(blocks.rowPanels, mostPanels);
  if (threads == 1) return blocks;
  // Several blocks for each thread, and as many for one as for the other.
  const auto wanted = 4 * threads;
  if (blocks.rowBlocks < wanted) {
    const auto most = std::min(blocks.rowPanels, wanted);
    // Rows are packed again for each range of columns, so rows are divided first.
    blocks.rowBlocks = std::max(blocks.rowBlocks, most / threads * threads);
    blocks.columnBlocks = std::min(blocks.columnPanels, ceilDivide(wanted, blocks.rowBlocks));
  } else {
    blocks.rowBlocks = std::min(blocks.rowPanels, ceilDivide(blocks.rowBlocks, threads) * threads);
  }
  return blocks;
}

/// The loop for elements W of b.
template <typename W, typename T>
auto multiplyOf(const TileKernel<T>& kernel) {
  if constexpr (std::is_same_v<W, T>) {
    return kernel.multiply;
  } else {
    return kernel.multiplyBfloat16;
  }
}

/// One thread's part in the product of a piece: the blocks that it is handed.
template <typename T, typename W>
class BlockMultiplier {
 public:
  /// `packed`: the columns of the piece.
  BlockMultiplier(const TileKernel<T>& kernel, const TiledProduct<T, W>& product,
                  const Piece& piece, const W* packed, const Blocks& blocks)
      : kernel_(kernel),
        product_(product),
        piece_(piece),
        packed_(packed),
        blocks_(blocks),
        sumLength_(sumLength(product.depth)),
        panelStride_(kernel.rows * sumLength_ + TileKernel<T>::overrun),
        widest_(kernel.panelsAtOnce(ceilDivide(product.rows, blocks.rowPanels))) {
    static thread_local Scratch<T> scratch;
    rows_ = scratch.reserve(ceilDivide(blocks.rowPanels, blocks.rowBlocks) * panelStride_);
  }

  void multiply(int64_t block) {
    const auto rowBlock = block / blocks_.columnBlocks;
    const auto columnBlock = block % blocks_.columnBlocks;
    firstPanel_ = startOf(rowBlock, blocks_.rowBlocks, blocks_.rowPanels);
    endPanel_ = startOf(rowBlock + 1, blocks_.rowBlocks, blocks_.rowPanels);
    const auto first = startOf(columnBlock, blocks_.columnBlocks, blocks_.columnPanels);
    const auto end = startOf(columnBlock + 1, blocks_.columnBlocks, blocks_.columnPanels);
    // At least once: a product over nothing has to be written too.
    int64_t k = 0;
    do {
      const auto depth = std::min(sumLength_, piece_.depth - k);
      if (packedBlock_ != rowBlock || packedDepth_ != k) packRows(k, depth);
      packedBlock_ = rowBlock;
      packedDepth_ = k;
      // Those who have other columns of these rows leave it to the first.
      if (product_.rowSums != nullptr && first == 0 && piece_.firstColumn == 0) sumRows(k, depth);
      for (int64_t panel = first; panel < end;) {
        const auto left = end - panel;
        const auto together = panelsTogether(left, widest_);
        multiplyPanels(k, depth, panel * kernel_.columns, together * kernel_.columns);
        panel += together;
      }
      k += sumLength_;
    } while (k < piece_.depth);
  }

 private:
  int64_t rowOf(int64_t panel) const { return startOf(panel, blocks_.rowPanels, product_.rows); }
  int64_t rowsOf(int64_t panel) const { return rowOf(panel + 1) - rowOf(panel); }
  T* packedRows(int64_t panel) const { return rows_ + (panel - firstPanel_) * panelStride_; }
  bool startsAt(int64_t k) const { return piece_.firstDepth == 0 && k == 0; }

  void packRows(int64_t k, int64_t depth) {
    const auto steps = product_.a.rowStride == 1 ? packedSteps : std::max<int64_t>(1, depth);
    for (int64_t step = 0; step < depth; step += steps) {
      for (int64_t panel = firstPanel_; panel < endPanel_; ++panel) {
        kernel_.packRows(partOf(product_.a, rowOf(panel), piece_.firstDepth + k + step),
                         rowsOf(panel), std::min(steps, depth - step),
                         packedRows(panel) + step * kernel_.rows);
      }
    }
  }

  void sumRows(int64_t k, int64_t depth) {
    for (int64_t panel = firstPanel_; panel < endPanel_; ++panel) {
      kernel_.sumRows(packedRows(panel), rowsOf(panel), depth, product_.rowSums + rowOf(panel),
                      /*accumulates=*/!startsAt(k));
    }
  }

  /// The tiles of all rows of the block and some neighboring panels of columns.
  void multiplyPanels(int64_t k, int64_t depth, int64_t firstColumn, int64_t mostColumns) {
    const bool completes = piece_.firstDepth + k + depth == product_.depth;
    const auto columns = std::min(mostColumns, piece_.columns - firstColumn);
    const auto bPanelStride = kernel_.columns * piece_.depth;
    const W* const b = packed_ + firstColumn * piece_.depth + k * kernel_.columns;
    // The tiles of this panel share the fetching of the next one.
    const auto share = kernel_.columns * depth / (endPanel_ - firstPanel_);
    const auto nextStep = share * static_cast<int64_t>(sizeof(W)) / std::max<int64_t>(1, depth);
    for (int64_t panel = firstPanel_; panel < endPanel_; ++panel) {
      const auto row = rowOf(panel);
      T* const c = product_.c + row * product_.cStride + piece_.firstColumn + firstColumn;
      multiplyOf<W>(kernel_)({packedRows(panel), b, c, bPanelStride, product_.cStride, depth,
                              rowsOf(panel), columns, product_.accumulates || !startsAt(k),
                              b + bPanelStride + (panel - firstPanel_) * share, nextStep});
      if (completes && product_.finish != nullptr) {
        (*product_.finish)(
            {c, product_.cStride, row, piece_.firstColumn + firstColumn, rowsOf(panel), columns});
      }
    }
  }

  const TileKernel<T>& kernel_;
  const TiledProduct<T, W>& product_;
  const Piece& piece_;
  const W* packed_;
  const Blocks& blocks_;
  int64_t sumLength_;
  int64_t panelStride_;
  int64_t widest_;  // number of panels that the tallest row panel can take at once
  T* rows_;
  // Which rows are packed.
  int64_t packedBlock_ = -1;
  int64_t packedDepth_ = -1;
  // Of the current block.
  int64_t firstPanel_ = 0;
  int64_t endPanel_ = 0;
};

template <typename T, typename W>
void multiplyPiece(const TileKernel<T>& kernel, const TiledProduct<T, W>& product,
                   const Piece& piece, const W* packed, int64_t threads) {
  const auto blocks = divide(kernel, product.rows, piece.columns, threads);
  std::atomic<int64_t> next{0};
  onThreads(threads, [&] {
    BlockMultiplier<T, W> multiplier(kernel, product, piece, packed, blocks);
    for (int64_t block; (block = next.fetch_add(1, std::memory_order_relaxed)) < blocks.count();) {
      multiplier.multiply(block);
    }
  });
}

template <typename T, typename W>
int64_t threadsFor(const TiledProduct<T, W>& product) {
  const bool isLarge = product.rows * product.columns * product.depth > workForThreads;
  return isLarge ? threadCount() : 1;
}

}  // namespace

template <typename T>
void multiplyTiled(const TileKernel<T>& kernel, const TiledProduct<T>& product) {
  if (product.rows == 0 || product.columns == 0) return;
  const auto threads = threadsFor(product);
  if (product.packedB != nullptr) {
    multiplyPiece(kernel, product, {0, product.depth, 0, product.columns}, product.packedB,
                  threads);
    return;
  }
  static thread_local Scratch<T> scratch;
  const auto most = packedBytes / static_cast<int64_t>(sizeof(T));
  const auto length = sumLength(product.depth);
  const auto depthStep =
      std::max<int64_t>(1, most / std::max(product.columns, kernel.columns) / length) * length;
  const auto depthOfPiece = std::min(product.depth, depthStep);
  const auto columnStep = std::max(
      kernel.columns, most / std::max<int64_t>(1, depthOfPiece) / kernel.columns * kernel.columns);
  for (int64_t column = 0; column < product.columns; column += columnStep) {
    const auto columns = std::min(columnStep, product.columns - column);
    // Depth 0 is a product of zeros, which has to be written.
    int64_t k = 0;
    do {
      const Piece piece{k, std::min(depthStep, product.depth - k), column, columns};
      T* const packed = scratch.reserve(packedSize(kernel, piece.depth, columns));
      packPanels(kernel, product.b, piece, packed, threads);
      multiplyPiece(kernel, product, piece, packed, threads);
      k += depthStep;
    } while (k < product.depth);
  }
}

void multiplyBfloat16(const TileKernel<float>& kernel,
                      const TiledProduct<float, uint16_t>& product) {
  if (product.rows == 0 || product.columns == 0) return;
  multiplyPiece(kernel, product, {0, product.depth, 0, product.columns}, product.packedB,
                threadsFor(product));
}

template <typename T>
int64_t packedSize(const TileKernel<T>& kernel, int64_t depth, int64_t columns) {
  return ceilDivide(columns, kernel.columns) * kernel.columns * depth;
}

template <typename T>
void packForProducts(const TileKernel<T>& kernel, const Strided<T>& b, int64_t depth,
                     int64_t columns, T* packed) {
  const int64_t threads = depth * columns > workForThreads ? threadCount() : 1;
  packPanels(kernel, b, {0, depth, 0, columns}, packed, threads);
}

template void multiplyTiled(const TileKernel<float>&, const TiledProduct<float>&);
template void multiplyTiled(const TileKernel<double>&, const TiledProduct<double>&);
template int64_t packedSize(const TileKernel<float>&, int64_t, int64_t);
template int64_t packedSize(const TileKernel<double>&, int64_t, int64_t);
template void packForProducts(const TileKernel<float>&, const Strided<float>&, int64_t, int64_t,
                              float*);
template void packForProducts(const TileKernel<double>&, const Strided<double>&, int64_t, int64_t,
                              double*);

}  // namespace torchformer::core
