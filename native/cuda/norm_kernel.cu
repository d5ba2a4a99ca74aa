// Norms over rows, forward and backward (formulas: core/ops/layer_norm.cc, core/ops/rms_norm.cc),
// alone and after a residual sum with dropout.
//
// Forward: a warp, or for long rows a block, processes one row. The row is read from memory once;
//   later passes find it in the L1 cache.
// Backward: the rows are short and many. A warp processes every n-th row and keeps the sums for
//   scale and shift of its columns in registers, so that gradOutput and input are read once; a
//   second kernel adds the blocks' sums in a fixed order. Rows over 1024 columns, or rows that
//   cannot be read four elements at a time, get their column sums from a separate kernel.
// Hazards: a row of equal values has std = 0, where the second term of the gradient is 0 / 0: taken
//   as 0. A row whose squares overflow is NaN. The sum of residual and dropped input is rounded
//   before the norm, because the backward pass reads it rounded.

#include "norm_kernel.h"

#include <cmath>
#include <type_traits>

#include "element_pairs.h"
#include "reduce.h"
#include "width.h"

namespace torchformer::cuda {

namespace {

constexpr int rowsPerBlock = 4;
constexpr int longRowThreads = 256;
/// Maximum number of columns for which a warp keeps the column sums in registers.
constexpr int64_t mostRegisterColumns = 1024;
constexpr int64_t mostPartialRows = 512;
constexpr int stripeRows = 8;

using core::RowForm;

template <typename C>
struct Affine {
  const C* scale;
  const C* shift;
};

/// Rows as they are in memory.
template <typename T, int Width>
struct PlainRows {
  using C = Compute<T>;
  const T* data;

  struct Row {
    const T* data;
    TF_DEVICE Vector<C, Width> first(int64_t column) const { return again(column); }
    TF_DEVICE Vector<C, Width> again(int64_t column) const { return loaded<Width>(data + column); }
  };
  TF_DEVICE Row row(int64_t index, int64_t columns) const { return {data + index * columns}; }
};

/// residual + drop(input), written to `sum` on first use.
template <typename T, typename SumType, int Width>
struct DroppedSums {
  using C = Compute<SumType>;
  const T* input;
  const SumType* residual;
  SumType* sum;
  Dropping dropping;

  struct Row {
    const T* input;
    const SumType* residual;
    SumType* sum;
    DroppingRow<C> dropped;

    TF_DEVICE Vector<C, Width> first(int64_t column) const {
      const auto x = loaded<Width>(input + column);
      const auto r = loaded<Width>(residual + column);
      Vector<SumType, Width> rounded;
      Vector<C, Width> value;
#pragma unroll
      for (int i = 0; i < Width; ++i) {
        rounded.values[i] =
            narrowed<SumType>(r.values[i] + dropped(static_cast<C>(x.values[i]), column + i));
        value.values[i] = widened(rounded.values[i]);
      }
      store(sum + column, rounded);
      return value;
    }
    TF_DEVICE Vector<C, Width> again(int64_t column) const { return loaded<Width>(sum + column); }
  };
  TF_DEVICE Row row(int64_t index, int64_t columns) const {
    const auto start = index * columns;
    return {input + start, residual + start, sum + start, DroppingRow<C>(dropping, index)};
  }
};

template <typename Rows, typename C, typename Out, int Threads, int Width>
__global__ void normForward(Rows all, Affine<C> affine, Out* output, C* means, C* stds,
                            int64_t rows, int64_t columns, RowForm<C> form) {
  const int64_t index =
      Threads == warpSize_ ? int64_t{blockIdx.x} * rowsPerBlock + threadIdx.y : blockIdx.x;
  if (index >= rows) return;
  using Group = RowGroup<Threads>;
  const auto row = all.row(index, columns);
  const int64_t begin = int64_t{threadIdx.x} * Width;
  constexpr int64_t step = int64_t{Threads} * Width;

  C sum = 0;
  for (int64_t column = begin; column < columns; column += step) {
    const auto x = row.first(column);
#pragma unroll
    for (int i = 0; i < Width; ++i) sum += x.values[i];
  }
  const C mean = form.centred ? Group::sum(sum) / form.count : C(0);

  C squares = 0;
  for (int64_t column = begin; column < columns; column += step) {
    const auto x = row.again(column);
#pragma unroll
    for (int i = 0; i < Width; ++i) squares += (x.values[i] - mean) * (x.values[i] - mean);
  }
  squares = Group::sum(squares);
  squares += squares - squares;  // NaN if infinite
  const C std = sqrt(squares / form.divisor);
  const C reciprocal = C(1) / form.spreadOf(std);

  for (int64_t column = begin; column < columns; column += step) {
    const auto x = row.again(column);
    const auto scale = loaded<Width>(affine.scale + column);
    Vector<Out, Width> y;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      const C shift = affine.shift == nullptr ? C(0) : affine.shift[column + i];
      y.values[i] = narrowed<Out>((x.values[i] - mean) * reciprocal * scale.values[i] + shift);
    }
    store(output + index * columns + column, y);
  }
  if (threadIdx.x == 0) {
    means[index] = mean;
    stds[index] = std;
  }
}

/// The statistics of one row for the backward pass.
template <typename C>
struct RowStatistics {
  C mean;
  C reciprocal;  // 1 / spread
  C meanU;       // of u = dy * scale; 0 unless centred
  C deviations;  // sum(u z) / (m r)

  TF_DEVICE C z(C x) const { return (x - mean) * reciprocal; }
  TF_DEVICE C gradient(C u, C zValue) const {
    return (u - meanU) * reciprocal - zValue * deviations;
  }
};

template <typename C, typename In, typename Grad>
struct BackwardRows {
  const Grad* gradOutput;
  const In* input;
  const C* scale;
  const C* mean;
  const C* std;
  const In* gradSum;
  In* gradInput;
  int64_t columns;
  RowForm<C> form;

  /// By the `Threads` threads of a group.
  template <int Threads, int Width>
  TF_DEVICE RowStatistics<C> statistics(int64_t row) const {
    const C deviation = std[row];
    RowStatistics<C> found{mean[row], C(1) / form.spreadOf(deviation), 0, 0};
    C sumU = 0;
    C sumUz = 0;
    constexpr int64_t step = int64_t{Threads} * Width;
    for (int64_t column = int64_t{threadIdx.x} * Width; column < columns; column += step) {
      const auto dy = loaded<Width>(gradOutput + row * columns + column);
      const auto x = loaded<Width>(input + row * columns + column);
      const auto s = loaded<Width>(scale + column);
#pragma unroll
      for (int i = 0; i < Width; ++i) {
        const C u = dy.values[i] * s.values[i];
        sumU += u;
        sumUz += u * found.z(x.values[i]);
      }
    }
    sumUz = RowGroup<Threads>::sum(sumUz);
    sumU = RowGroup<Threads>::sum(sumU);
    if (form.centred) found.meanU = sumU / form.count;
    const C r = form.epsOutside ? deviation : C(1) / found.reciprocal;
    found.deviations = r > C(0) ? sumUz / (form.divisor * r) : C(0);
    return found;
  }
};

/// The gradient through a dropout, if there is one.
template <typename T>
struct DroppedGradient {
  T* gradDropped;  // may be null
  Dropping dropping;

  template <int Width, typename C>
  TF_DEVICE void write(int64_t row, int64_t column, int64_t columns,
                       const Vector<C, Width>& gradient) const {
    if (gradDropped == nullptr) return;
    const DroppingRow<C> dropped(dropping, row);
    Vector<T, Width> result;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      result.values[i] = narrowed<T>(dropped(gradient.values[i], column + i));
    }
    store(gradDropped + row * columns + column, result);
  }
};

/// Writes the gradients of `Width` elements; returns z of each.
template <int Width, typename C, typename In, typename Grad, typename Dropped>
TF_DEVICE void writeGradient(const BackwardRows<C, In, Grad>& all, const Dropped& dropped,
                             const RowStatistics<C>& found, int64_t row, int64_t column,
                             const Vector<C, Width>& dy, Vector<C, Width>& z) {
  const auto place = row * all.columns + column;
  const auto x = loaded<Width>(all.input + place);
  const auto s = loaded<Width>(all.scale + column);
  Vector<C, Width> gradient;
#pragma unroll
  for (int i = 0; i < Width; ++i) {
    z.values[i] = found.z(x.values[i]);
    gradient.values[i] = found.gradient(dy.values[i] * s.values[i], z.values[i]);
  }
  if (all.gradInput == nullptr) return;
  if (all.gradSum != nullptr) {
    const auto added = loaded<Width>(all.gradSum + place);
#pragma unroll
    for (int i = 0; i < Width; ++i) gradient.values[i] += added.values[i];
  }
  Vector<In, Width> rounded;
#pragma unroll
  for (int i = 0; i < Width; ++i) rounded.values[i] = narrowed<In>(gradient.values[i]);
  store(all.gradInput + place, rounded);
  dropped.write(row, column, all.columns, gradient);
}

/// Rows of at most 32 * Width * PerLane columns: a warp takes every n-th, with its column sums in
/// registers.
template <typename C, typename In, typename Grad, typename Dropped, int Width, int PerLane>
__global__ void normBackwardShort(BackwardRows<C, In, Grad> all, Dropped dropped, C* scalePartials,
                                  C* shiftPartials, int64_t rows) {
  C scaleSums[PerLane * Width];
  C shiftSums[PerLane * Width];
#pragma unroll
  for (int i = 0; i < PerLane * Width; ++i) scaleSums[i] = shiftSums[i] = C(0);
  const int lane = static_cast<int>(threadIdx.x);

  for (int64_t row = int64_t{blockIdx.x} * rowsPerBlock + threadIdx.y; row < rows;
       row += int64_t{gridDim.x} * rowsPerBlock) {
    const auto found = all.template statistics<warpSize_, Width>(row);
#pragma unroll
    for (int part = 0; part < PerLane; ++part) {
      const int64_t column = (int64_t{part} * warpSize_ + lane) * Width;
      if (column < all.columns) {
        const auto dy = loaded<Width>(all.gradOutput + row * all.columns + column);
        Vector<C, Width> z;
        writeGradient<Width>(all, dropped, found, row, column, dy, z);
#pragma unroll
        for (int i = 0; i < Width; ++i) {
          scaleSums[part * Width + i] += dy.values[i] * z.values[i];
          shiftSums[part * Width + i] += dy.values[i];
        }
      }
    }
  }
  if (scalePartials == nullptr) return;

  // The block's warps in sequence, for a fixed order of additions.
  __shared__ C scaleShared[PerLane * Width * warpSize_];
  __shared__ C shiftShared[PerLane * Width * warpSize_];
  for (int warp = 0; warp < rowsPerBlock; ++warp) {
    if (static_cast<int>(threadIdx.y) == warp) {
#pragma unroll
      for (int i = 0; i < PerLane * Width; ++i) {
        const int place = i * warpSize_ + lane;
        scaleShared[place] = (warp == 0 ? C(0) : scaleShared[place]) + scaleSums[i];
        shiftShared[place] = (warp == 0 ? C(0) : shiftShared[place]) + shiftSums[i];
      }
    }
    __syncthreads();
  }
  if (threadIdx.y != 0) return;
#pragma unroll
  for (int part = 0; part < PerLane; ++part) {
    const int64_t column = (int64_t{part} * warpSize_ + lane) * Width;
    if (column < all.columns) {
#pragma unroll
      for (int i = 0; i < Width; ++i) {
        const auto target = int64_t{blockIdx.x} * all.columns + column + i;
        const int place = (part * Width + i) * warpSize_ + lane;
        scalePartials[target] = scaleShared[place];
        shiftPartials[target] = shiftShared[place];
      }
    }
  }
}

/// gradInput of long rows, one block per row.
template <typename C, typename In, typename Grad, typename Dropped, int Width>
__global__ void normBackwardLong(BackwardRows<C, In, Grad> all, Dropped dropped) {
  const int64_t row = blockIdx.x;
  const auto found = all.template statistics<longRowThreads, Width>(row);
  for (int64_t column = int64_t{threadIdx.x} * Width; column < all.columns;
       column += int64_t{longRowThreads} * Width) {
    const auto dy = loaded<Width>(all.gradOutput + row * all.columns + column);
    Vector<C, Width> z;
    writeGradient<Width>(all, dropped, found, row, column, dy, z);
  }
}

/// Column sums of long rows: a block sums 32 columns of every n-th group of rows.
template <typename C, typename In, typename Grad>
__global__ void normColumnSums(BackwardRows<C, In, Grad> all, C* scalePartials, C* shiftPartials,
                               int64_t rows) {
  const int64_t column = int64_t{blockIdx.x} * warpSize_ + threadIdx.x;
  C scaleSum = 0;
  C shiftSum = 0;
  if (column < all.columns) {
    for (int64_t row = int64_t{blockIdx.y} * stripeRows + threadIdx.y; row < rows;
         row += int64_t{gridDim.y} * stripeRows) {
      const auto place = row * all.columns + column;
      const C dy = widened(all.gradOutput[place]);
      scaleSum +=
          dy * (widened(all.input[place]) - all.mean[row]) / all.form.spreadOf(all.std[row]);
      shiftSum += dy;
    }
  }
  __shared__ C scaleShared[stripeRows][warpSize_];
  __shared__ C shiftShared[stripeRows][warpSize_];
  scaleShared[threadIdx.y][threadIdx.x] = scaleSum;
  shiftShared[threadIdx.y][threadIdx.x] = shiftSum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= all.columns) return;
  for (int i = 1; i < stripeRows; ++i) {
    scaleSum += scaleShared[i][threadIdx.x];
    shiftSum += shiftShared[i][threadIdx.x];
  }
  scalePartials[int64_t{blockIdx.y} * all.columns + column] = scaleSum;
  shiftPartials[int64_t{blockIdx.y} * all.columns + column] = shiftSum;
}

/// sums[column] = the sum of partials [count, columns] over count, in order.
template <typename C>
__global__ void sumPartials(const C* partials, C* sums, int64_t count, int64_t columns) {
  const int64_t column = int64_t{blockIdx.x} * warpSize_ + threadIdx.x;
  C sum = 0;
  if (column < columns) {
    for (int64_t row = threadIdx.y; row < count; row += stripeRows) {
      sum += partials[row * columns + column];
    }
  }
  __shared__ C shared[stripeRows][warpSize_];
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int i = 1; i < stripeRows; ++i) sum += shared[i][threadIdx.x];
  sums[column] = sum;
}

unsigned blocksFor(int64_t count, int64_t perBlock) {
  return static_cast<unsigned>((count + perBlock - 1) / perBlock);
}

template <typename Rows, typename Out, int Width>
void forwardOf(const NormForwardArguments& a, const Rows& all, void* stream) {
  using C = typename Rows::C;
  const Affine<C> affine{static_cast<const C*>(a.scale), static_cast<const C*>(a.shift)};
  auto* output = static_cast<Out*>(a.output);
  auto* mean = static_cast<C*>(a.mean);
  auto* std = static_cast<C*>(a.std);
  const RowForm<C> form(a.form, a.columns);
  if (a.columns <= 2048) {
    TF_LAUNCH((normForward<Rows, C, Out, warpSize_, Width>), dim3(blocksFor(a.rows, rowsPerBlock)),
              dim3(warpSize_, rowsPerBlock), stream, all, affine, output, mean, std, a.rows,
              a.columns, form);
  } else {
    TF_LAUNCH((normForward<Rows, C, Out, longRowThreads, Width>),
              dim3(static_cast<unsigned>(a.rows)), dim3(longRowThreads), stream, all, affine,
              output, mean, std, a.rows, a.columns, form);
  }
}

template <typename C, typename In, typename Grad, typename Dropped, int Width>
void backwardShort(const NormBackwardArguments& a, const BackwardRows<C, In, Grad>& all,
                   const Dropped& dropped, void* stream) {
  const dim3 grid(static_cast<unsigned>(normPartialRows(a.rows, a.columns)));
  const dim3 block(warpSize_, rowsPerBlock);
  auto* scalePartials = static_cast<C*>(a.scalePartials);
  auto* shiftPartials = static_cast<C*>(a.shiftPartials);
  constexpr int most = static_cast<int>(mostRegisterColumns) / (warpSize_ * Width);
  constexpr int half = most / 2;
  const auto perLane = (a.columns + warpSize_ * Width - 1) / (warpSize_ * Width);
  if (perLane <= half) {
    TF_LAUNCH((normBackwardShort<C, In, Grad, Dropped, Width, half>), grid, block, stream, all,
              dropped, scalePartials, shiftPartials, a.rows);
  } else {
    TF_LAUNCH((normBackwardShort<C, In, Grad, Dropped, Width, most>), grid, block, stream, all,
              dropped, scalePartials, shiftPartials, a.rows);
  }
}

template <typename C, typename In, typename Grad, typename Dropped, int Width>
void backwardLong(const NormBackwardArguments& a, const BackwardRows<C, In, Grad>& all,
                  const Dropped& dropped, void* stream) {
  if (a.gradInput != nullptr) {
    TF_LAUNCH((normBackwardLong<C, In, Grad, Dropped, Width>), dim3(static_cast<unsigned>(a.rows)),
              dim3(longRowThreads), stream, all, dropped);
  }
  if (a.scalePartials == nullptr) return;
  const dim3 grid(blocksFor(a.columns, warpSize_),
                  static_cast<unsigned>(normPartialRows(a.rows, a.columns)));
  TF_LAUNCH((normColumnSums<C, In, Grad>), grid, dim3(warpSize_, stripeRows), stream, all,
            static_cast<C*>(a.scalePartials), static_cast<C*>(a.shiftPartials), a.rows);
}

template <typename In, typename Grad, typename Dropped>
void backwardOf(const NormBackwardArguments& a, const Dropped& dropped, void* stream) {
  using C = Compute<In>;
  const BackwardRows<C, In, Grad> all{
      static_cast<const Grad*>(a.gradOutput), static_cast<const In*>(a.input),
      static_cast<const C*>(a.scale),         static_cast<const C*>(a.mean),
      static_cast<const C*>(a.std),           static_cast<const In*>(a.gradSum),
      static_cast<In*>(a.gradInput),          a.columns,
      RowForm<C>(a.form, a.columns)};
  const bool isWide = fitsWidth<4>(a.columns, a.gradOutput, a.input, a.scale, a.gradSum,
                                   a.gradInput, a.gradDropped);
  // Short rows that cannot be read four elements at a time are rare.
  if (isWide && a.columns <= mostRegisterColumns) {
    backwardShort<C, In, Grad, Dropped, 4>(a, all, dropped, stream);
  } else if (isWide) {
    backwardLong<C, In, Grad, Dropped, 4>(a, all, dropped, stream);
  } else {
    backwardLong<C, In, Grad, Dropped, 1>(a, all, dropped, stream);
  }
  if (a.scalePartials == nullptr) return;
  const auto count = normPartialRows(a.rows, a.columns);
  const dim3 grid(blocksFor(a.columns, warpSize_));
  const dim3 block(warpSize_, stripeRows);
  TF_LAUNCH((sumPartials<C>), grid, block, stream, static_cast<const C*>(a.scalePartials),
            static_cast<C*>(a.gradScale), count, a.columns);
  TF_LAUNCH((sumPartials<C>), grid, block, stream, static_cast<const C*>(a.shiftPartials),
            static_cast<C*>(a.gradShift), count, a.columns);
}

template <typename In, typename Out>
void plainForward(const NormForwardArguments& a, void* stream) {
  const auto* input = static_cast<const In*>(a.input);
  if (fitsWidth<4>(a.columns, a.input, a.scale, a.output)) {
    forwardOf<PlainRows<In, 4>, Out, 4>(a, {input}, stream);
  } else {
    forwardOf<PlainRows<In, 1>, Out, 1>(a, {input}, stream);
  }
}

template <typename In, typename SumType, typename Out>
void summedForward(const NormForwardArguments& a, void* stream) {
  const auto* input = static_cast<const In*>(a.input);
  const auto* residual = static_cast<const SumType*>(a.residual);
  auto* sum = static_cast<SumType*>(a.sum);
  if (fitsWidth<4>(a.columns, a.input, a.residual, a.sum, a.scale, a.output)) {
    forwardOf<DroppedSums<In, SumType, 4>, Out, 4>(a, {input, residual, sum, a.dropping}, stream);
  } else {
    forwardOf<DroppedSums<In, SumType, 1>, Out, 1>(a, {input, residual, sum, a.dropping}, stream);
  }
}

/// Calls visit<Dropped, Sum, Out>(): the dropped input has the type of the sum, or that of the
/// norm's result.
template <typename Visit>
LaunchError forSummedTypes(Element dropped, Element sum, Element out, const Visit& visit) {
  if (dropped != sum && dropped != out) return noSuchTypes;
  return forNarrowingPairs(sum, out, [&]<typename S, typename O>() {
    if constexpr (!std::is_same_v<S, O>) {
      if (dropped == out) return visit.template operator()<O, S, O>();
    }
    visit.template operator()<S, S, O>();
  });
}

}  // namespace

LaunchError launchNormForward(const NormForwardArguments& a, void* stream) {
  if (a.rows == 0) return nullptr;
  if (a.residual == nullptr) {
    return forNarrowingPairs(a.inputType, a.outputType, [&]<typename In, typename Out>() {
      plainForward<In, Out>(a, stream);
    });
  }
  return forSummedTypes(a.inputType, a.sumType, a.outputType,
                        [&]<typename In, typename SumType, typename Out>() {
                          summedForward<In, SumType, Out>(a, stream);
                        });
}

int64_t normPartialRows(int64_t rows, int64_t columns) {
  const int64_t perBlock = columns <= mostRegisterColumns ? rowsPerBlock : stripeRows;
  const auto blocks = (rows + perBlock - 1) / perBlock;
  return blocks < mostPartialRows ? (blocks > 0 ? blocks : 1) : mostPartialRows;
}

LaunchError launchNormBackward(const NormBackwardArguments& a, void* stream) {
  if (a.rows == 0) return nullptr;
  const auto droppedType = a.gradDropped == nullptr ? a.inputType : a.droppedType;
  return forSummedTypes(
      droppedType, a.inputType, a.gradType, [&]<typename F, typename In, typename Grad>() {
        backwardOf<In, Grad>(a, DroppedGradient<F>{static_cast<F*>(a.gradDropped), a.dropping},
                             stream);
      });
}

}  // namespace torchformer::cuda
