// Dropout, alone or added to a residual (formula: core/ops/dropout.cc), and its mask.

#include "dropout_kernel.h"

#include "element_pairs.h"
#include "row_grid.h"
#include "width.h"

namespace torchformer::cuda {

namespace {

template <typename In, typename Out, int Width>
__global__ void dropRows(const In* input, const Out* residual, Out* output, int64_t rows,
                         int64_t columns, Dropping dropping) {
  using C = Compute<Out>;
  const int64_t column = columnInRowGrid(Width);
  if (column >= columns) return;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const DroppingRow<C> dropped(dropping, row);
    const auto place = row * columns + column;
    const auto x = loaded<Width>(input + place);
    Vector<C, Width> added{};
    if (residual != nullptr) added = loaded<Width>(residual + place);
    Vector<Out, Width> y;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      y.values[i] =
          narrowed<Out>(added.values[i] + dropped(static_cast<C>(x.values[i]), column + i));
    }
    store(output + place, y);
  }
}

__global__ void keepMask(bool* kept, int64_t rows, int64_t columns, Dropping dropping) {
  const int64_t column = columnInRowGrid(1);
  if (column >= columns) return;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    kept[row * columns + column] = DroppingRow<float>(dropping, row).keeps(column);
  }
}

template <typename In, typename Out, int Width>
void dropOf(const DropArguments& a, void* stream) {
  TF_LAUNCH((dropRows<In, Out, Width>), rowGrid(a.rows, a.columns, Width), dim3(rowGridThreads),
            stream, static_cast<const In*>(a.input), static_cast<const Out*>(a.residual),
            static_cast<Out*>(a.output), a.rows, a.columns, a.dropping);
}

}  // namespace

LaunchError launchDrop(const DropArguments& a, void* stream) {
  if (a.rows == 0 || a.columns == 0) return nullptr;
  return forElementPairs(a.inputType, a.outputType, [&]<typename In, typename Out>() {
    if (fitsWidth<4>(a.columns, a.input, a.residual, a.output)) {
      dropOf<In, Out, 4>(a, stream);
    } else {
      dropOf<In, Out, 1>(a, stream);
    }
  });
}

LaunchError launchKeptMask(bool* kept, int64_t rows, int64_t columns, const Dropping& dropping,
                           void* stream) {
  if (rows == 0 || columns == 0) return nullptr;
  TF_LAUNCH(keepMask, rowGrid(rows, columns, 1), dim3(rowGridThreads), stream, kept, rows, columns,
            dropping);
  return launchError();
}

}  // namespace torchformer::cuda
