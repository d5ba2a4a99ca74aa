// Rows of an embedding table with rows of a position table (formulas: core/ops/embed.cc).
//
// Ids are in GPU memory, where they have not been checked: each is compared with the size of its
// table before it is used.

#include "embed_kernel.h"

#include "element_pairs.h"
#include "row_grid.h"
#include "width.h"

namespace torchformer::cuda {

namespace {

template <typename T>
struct Table {
  const T* data;
  const int64_t* ids;
  int64_t size;

  explicit Table(const LookedUp& from)
      : data(static_cast<const T*>(from.data)), ids(from.ids), size(from.size) {}

  TF_DEVICE bool exists() const { return ids != nullptr; }
  TF_DEVICE bool has(int64_t row) const { return !exists() || (ids[row] >= 0 && ids[row] < size); }
};

template <typename T, int Width>
__global__ void embed(Table<T> weight, Table<Compute<T>> table, T* output, int64_t rows,
                      int64_t columns, Compute<T> scale, Dropping dropping) {
  using C = Compute<T>;
  const int64_t column = columnInRowGrid(Width);
  if (column >= columns) return;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const DroppingRow<C> dropped(dropping, row);
    const bool isKnown = weight.has(row) && table.has(row);
    Vector<C, Width> x{};
    Vector<C, Width> added{};
    if (isKnown) {
      x = loaded<Width>(weight.data + weight.ids[row] * columns + column);
      if (table.exists()) added = loaded<Width>(table.data + table.ids[row] * columns + column);
    }
    Vector<T, Width> y;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      const C sum = dropped(x.values[i] * scale + added.values[i], column + i);
      y.values[i] = narrowed<T>(isKnown ? sum : notANumber<C>);
    }
    store(output + row * columns + column, y);
  }
}

template <typename T, int Width>
__global__ void embedBackward(Table<T> weight, Table<Compute<T>> table, const T* gradOutput,
                              T* output, int64_t rows, int64_t columns, Compute<T> scale,
                              Dropping dropping) {
  using C = Compute<T>;
  const int64_t column = columnInRowGrid(Width);
  if (column >= columns) return;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const DroppingRow<C> dropped(dropping, row);
    const bool isKnown = weight.has(row) && table.has(row);
    const auto place = row * columns + column;
    const auto dy = loaded<Width>(gradOutput + place);
    Vector<T, Width> slope;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      slope.values[i] = narrowed<T>(isKnown ? dropped(dy.values[i], column + i) * scale : C(0));
    }
    store(output + place, slope);
  }
}

}  // namespace

LaunchError launchEmbed(const EmbedArguments& a, void* stream) {
  if (a.rows == 0 || a.columns == 0) return nullptr;
  return forElements(a.type, [&]<typename T>() {
    using C = Compute<T>;
    const auto launch = [&]<int Width>() {
      TF_LAUNCH((embed<T, Width>), rowGrid(a.rows, a.columns, Width), dim3(rowGridThreads), stream,
                Table<T>(a.weight), Table<C>(a.table), static_cast<T*>(a.output), a.rows, a.columns,
                static_cast<C>(a.scale), a.dropping);
    };
    if (fitsWidth<4>(a.columns, a.weight.data, a.table.data, a.output)) {
      launch.template operator()<4>();
    } else {
      launch.template operator()<1>();
    }
  });
}

LaunchError launchEmbedBackward(const EmbedArguments& a, void* stream) {
  if (a.rows == 0 || a.columns == 0) return nullptr;
  return forElements(a.type, [&]<typename T>() {
    using C = Compute<T>;
    const auto launch = [&]<int Width>() {
      TF_LAUNCH((embedBackward<T, Width>), rowGrid(a.rows, a.columns, Width), dim3(rowGridThreads),
                stream, Table<T>(a.weight), Table<C>(a.table), static_cast<const T*>(a.gradOutput),
                static_cast<T*>(a.output), a.rows, a.columns, static_cast<C>(a.scale), a.dropping);
    };
    if (fitsWidth<4>(a.columns, a.gradOutput, a.output)) {
      launch.template operator()<4>();
    } else {
      launch.template operator()<1>();
    }
  });
}

}  // namespace torchformer::cuda
