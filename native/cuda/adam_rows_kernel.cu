// Adam for the rows of a table that a gradient has reached so far (formula: core/ops/adam_rows.cc).
//
// A warp processes one row of the table. It finds the row's entries in the sorted ids, adds them in
// order, so that every run gives the same bits, and skips the row if it has neither entries nor
// moments. An id that is not a row of the table is ignored.

#include "adam_rows_kernel.h"

#include <cmath>

namespace torchformer::cuda {

namespace {

constexpr int rowsPerBlock = 4;

template <typename T>
struct AdamRows {
  T* parameter;
  T* expAvg;
  T* expAvgSq;
  bool* touched;
  const int64_t* ids;
  const int64_t* order;
  const T* values;
  const float* step;
  const float* lr;
  double rate, beta1, beta2;
  T eps;
  int64_t rows, columns, entries;

  /// The first entry whose id is not below `row`.
  TF_DEVICE int64_t firstEntry(int64_t row) const {
    int64_t low = 0;
    int64_t high = entries;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (ids[middle] < row) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

template <typename T>
__global__ void adamRows(AdamRows<T> all) {
  const int64_t row = int64_t{blockIdx.x} * rowsPerBlock + threadIdx.y;
  if (row >= all.rows) return;
  const int64_t first = all.firstEntry(row);
  const bool hasGradient = first < all.entries && all.ids[first] == row;
  if (!hasGradient && !all.touched[row]) return;
  if (hasGradient && threadIdx.x == 0) all.touched[row] = true;

  // In double: 1 - 0.999F has a relative error of 1e-5.
  const double steps = static_cast<double>(*all.step);
  const double lr = all.lr == nullptr ? all.rate : static_cast<double>(*all.lr);
  const T rate = static_cast<T>(lr / (1.0 - pow(all.beta1, steps)));
  const T secondScale = static_cast<T>(1.0 / sqrt(1.0 - pow(all.beta2, steps)));
  const T beta1 = static_cast<T>(all.beta1);
  const T beta2 = static_cast<T>(all.beta2);
  const T oneLess1 = static_cast<T>(1.0 - all.beta1);
  const T oneLess2 = static_cast<T>(1.0 - all.beta2);
  for (int64_t column = threadIdx.x; column < all.columns; column += warpSize_) {
    T g = 0;
    for (int64_t entry = first; entry < all.entries && all.ids[entry] == row; ++entry) {
      const int64_t place = all.order == nullptr ? entry : all.order[entry];
      g += all.values[place * all.columns + column];
    }
    const int64_t place = row * all.columns + column;
    const T m = beta1 * all.expAvg[place] + oneLess1 * g;
    const T v = beta2 * all.expAvgSq[place] + oneLess2 * g * g;
    all.expAvg[place] = m;
    all.expAvgSq[place] = v;
    all.parameter[place] -= rate * m / (sqrt(v) * secondScale + all.eps);
  }
}

template <typename T>
LaunchError launch(const AdamRowsArguments& a, void* stream) {
  const AdamRows<T> all{static_cast<T*>(a.parameter),
                        static_cast<T*>(a.expAvg),
                        static_cast<T*>(a.expAvgSq),
                        a.touched,
                        a.ids,
                        a.order,
                        static_cast<const T*>(a.values),
                        a.step,
                        a.lr,
                        a.rate,
                        a.beta1,
                        a.beta2,
                        static_cast<T>(a.eps),
                        a.rows,
                        a.columns,
                        a.entries};
  const auto blocks = static_cast<unsigned>((a.rows + rowsPerBlock - 1) / rowsPerBlock);
  TF_LAUNCH(adamRows<T>, dim3(blocks), dim3(warpSize_, rowsPerBlock), stream, all);
  return launchError();
}

}  // namespace

LaunchError launchAdamRows(const AdamRowsArguments& a, void* stream) {
  if (a.rows == 0 || a.columns == 0) return nullptr;
  return a.type == Element::float64 ? launch<double>(a, stream) : launch<float>(a, stream);
}

}  // namespace torchformer::cuda
