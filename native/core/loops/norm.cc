#include "core/loops/norm.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/loops/dropout.h"
#include "core/loops/simd.h"

namespace torchformer::core {

namespace {

/// Number of elements below which a second thread costs more than it gains.
constexpr int64_t grain = 8192;

template <typename T>
struct Statistics {
  T mean;
  T std;
};

/// Number of parallel sums over a row: with a single vector, each addition would wait for the
/// previous one.
constexpr int64_t lanes = 32;

/// The sum of term(0) to term(n - 1).
template <typename T, typename Term>
TF_INLINE T sumOf(int64_t n, const Term& term) {
  T sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
#pragma omp simd
    for (int64_t lane = 0; lane < lanes; ++lane) sums[lane] += term(i + lane);
  }
  T sum = 0;
  for (; i < n; ++i) sum += term(i);
  for (int64_t lane = 0; lane < lanes; ++lane) sum += sums[lane];
  return sum;
}

// A row is read from memory once: the later loops find it in the L1 cache.
template <typename T>
TF_INLINE Statistics<T> forwardLoop(const T* x, const T* scale, const T* shift, T* y,
                                    const RowForm<T>& form) {
  const auto n = form.features;
  T mean = 0;
  if (form.centred) {
    mean = sumOf<T>(n, [=](int64_t i) TF_INLINE_LAMBDA { return x[i]; }) / static_cast<T>(n);
  }
  T squares =
      sumOf<T>(n, [=](int64_t i) TF_INLINE_LAMBDA { return (x[i] - mean) * (x[i] - mean); });
  squares += squares - squares;  // NaN if infinite
  const T std = std::sqrt(squares / form.divisor);
  const T reciprocal = T(1) / form.spreadOf(std);
  if (shift != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * reciprocal * scale[i] + shift[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * reciprocal * scale[i];
  }
  return {mean, std};
}

/// One row of a backward pass.
template <typename T>
struct BackwardRow {
  const T* dy;
  const T* x;
  const T* added;  // to dx; null: nothing
  Statistics<T> statistics;
  T* dx;  // null: not wanted
};

/// Sums over the rows of a block.
template <typename T>
struct ParameterSums {
  T* scale;
  T* shift;
};

template <typename T>
TF_INLINE void backwardLoop(const BackwardRow<T>& row, const T* scale,
                            const ParameterSums<T>& parameters, const RowForm<T>& form) {
  const auto n = form.features;
  const T* const dy = row.dy;
  const T* const x = row.x;
  T* const scaleSums = parameters.scale;
  T* const shiftSums = parameters.shift;
  const T mean = row.statistics.mean;
  const T spread = form.spreadOf(row.statistics.std);
  const T reciprocal = T(1) / spread;
  T sums[lanes] = {};
  T alongs[lanes] = {};
  const auto visit = [=](int64_t i, T& sum, T& along) TF_INLINE_LAMBDA {
    const T z = (x[i] - mean) * reciprocal;
    const T u = dy[i] * scale[i];
    sum += u;
    along += u * z;
    scaleSums[i] += dy[i] * z;
    shiftSums[i] += dy[i];
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
#pragma omp simd
    for (int64_t lane = 0; lane < lanes; ++lane) visit(i + lane, sums[lane], alongs[lane]);
  }
  T sum = 0;
  T along = 0;
  for (; i < n; ++i) visit(i, sum, along);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    sum += sums[lane];
    along += alongs[lane];
  }
  T* const dx = row.dx;
  if (dx == nullptr) return;
  const T upstreamMean = form.centred ? sum / static_cast<T>(n) : T(0);
  // In a row of equal values, d std / dx is 0 / 0, taken as 0.
  const T length = form.epsOutside ? row.statistics.std : spread;
  const T factor = length == T(0) ? T(0) : along / (length * form.divisor);
  const auto gradient = [=](int64_t i) TF_INLINE_LAMBDA {
    const T z = (x[i] - mean) * reciprocal;
    return (dy[i] * scale[i] - upstreamMean) * reciprocal - z * factor;
  };
  if (const T* const added = row.added; added != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] = gradient(i) + added[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] = gradient(i);
  }
}

TF_VECTORIZED Statistics<float> forwardRow(const float* x, const float* scale, const float* shift,
                                           float* y, const RowForm<float>& form) {
  return forwardLoop(x, scale, shift, y, form);
}

Statistics<double> forwardRow(const double* x, const double* scale, const double* shift, double* y,
                              const RowForm<double>& form) {
  return forwardLoop(x, scale, shift, y, form);
}

TF_VECTORIZED void backwardRow(const BackwardRow<float>& row, const float* scale,
                               const ParameterSums<float>& sums, const RowForm<float>& form) {
  backwardLoop(row, scale, sums, form);
}

void backwardRow(const BackwardRow<double>& row, const double* scale,
                 const ParameterSums<double>& sums, const RowForm<double>& form) {
  backwardLoop(row, scale, sums, form);
}

int64_t rowsPerTask(int64_t features) { return std::max<int64_t>(1, grain / features); }

/// `write(row)` writes a row of the input before it is read.
template <typename T, typename Write>
NormResult forwardAll(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                      const NormForm& form, const Write& write) {
  const RowForm<T> rowForm(form, input.size(-1));
  const auto features = rowForm.features;
  const auto rows = input.numel() / features;
  NormResult result{at::empty_like(input), at::empty({rows}, input.options()),
                    at::empty({rows}, input.options())};
  const auto* x = input.const_data_ptr<T>();
  const auto* scales = scale.const_data_ptr<T>();
  const auto* shifts = shift.defined() ? shift.const_data_ptr<T>() : nullptr;
  auto* y = result.output.template mutable_data_ptr<T>();
  auto* means = result.mean.template mutable_data_ptr<T>();
  auto* stds = result.std.template mutable_data_ptr<T>();
  at::parallel_for(0, rows, rowsPerTask(features), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      write(row);
      const auto found =
          forwardRow(x + row * features, scales, shifts, y + row * features, rowForm);
      means[row] = found.mean;
      stds[row] = found.std;
    }
  });
  return result;
}

/// `gradInput` is written unless it is undefined; `read(row)` reads a row that was just written.
template <typename T, typename Read>
NormGradients backwardAll(const at::Tensor& gradOutput, const at::Tensor& input,
                          const at::Tensor& scale, const at::Tensor& mean, const at::Tensor& std,
                          const at::Tensor& gradSum, const NormForm& form,
                          const at::Tensor& gradInput, const Read& read) {
  const RowForm<T> rowForm(form, input.size(-1));
  const auto features = rowForm.features;
  const auto rows = input.numel() / features;
  // Blocks of rows have separate sums, which are added in order, so that the result does not depend
  // on the number of threads or their timing.
  constexpr int64_t mostBlocks = 64;
  const auto blockRows = std::max(rowsPerTask(features), (rows + mostBlocks - 1) / mostBlocks);
  const auto blocks = (rows + blockRows - 1) / blockRows;
  const auto sums = at::zeros({std::max<int64_t>(blocks, 1), 2, features}, input.options());
  NormGradients result;
  result.input = gradInput;
  const auto* dy = gradOutput.const_data_ptr<T>();
  const auto* x = input.const_data_ptr<T>();
  const auto* scales = scale.const_data_ptr<T>();
  const auto* means = mean.const_data_ptr<T>();
  const auto* stds = std.const_data_ptr<T>();
  const auto* added = gradSum.defined() ? gradSum.const_data_ptr<T>() : nullptr;
  auto* dx = gradInput.defined() ? gradInput.mutable_data_ptr<T>() : nullptr;
  auto* blockSums = sums.template mutable_data_ptr<T>();
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      auto* scaleSums = blockSums + block * 2 * features;
      const auto last = std::min(rows, (block + 1) * blockRows);
      for (int64_t row = block * blockRows; row < last; ++row) {
        const auto start = row * features;
        backwardRow({dy + start,
                     x + start,
                     added == nullptr ? nullptr : added + start,
                     {means[row], stds[row]},
                     dx == nullptr ? nullptr : dx + start},
                    scales, {scaleSums, scaleSums + features}, rowForm);
        read(row);
      }
    }
  });
  for (int64_t block = 1; block < blocks; ++block) {
    const auto* more = blockSums + block * 2 * features;
    for (int64_t i = 0; i < 2 * features; ++i) blockSums[i] += more[i];
  }
  // Copies, because views would keep the sums of all blocks alive.
  result.scale = sums.select(0, 0).select(0, 0).clone();
  result.shift = sums.select(0, 0).select(0, 1).clone();
  return result;
}

/// Where nothing is done before or after a row.
constexpr auto nothing = [](int64_t) {};

template <typename T>
DroppedSumNorm sumForward(const at::Tensor& input, const RowsDropout& dropout,
                          const at::Tensor& residual, const at::Tensor& scale,
                          const at::Tensor& shift, const NormForm& form) {
  auto sum = at::empty_like(residual);
  const auto features = residual.size(-1);
  const auto* terms = input.const_data_ptr<T>();
  const auto* residuals = residual.const_data_ptr<T>();
  auto* sums = sum.template mutable_data_ptr<T>();
  const RowDropper<T> drop(dropout.p, dropout.seed, features);
  auto norm = forwardAll<T>(sum, scale, shift, form, [&](int64_t row) {
    const auto start = row * features;
    drop(row, terms + start, residuals + start, sums + start);
  });
  return {std::move(sum), std::move(norm)};
}

template <typename T>
DroppedSumNormGradients sumBackward(const at::Tensor& gradOutput, const at::Tensor& gradSum,
                                    const at::Tensor& sum, const RowsDropout& dropout,
                                    const at::Tensor& scale, const at::Tensor& mean,
                                    const at::Tensor& std, const NormForm& form) {
  const auto gradient = at::empty_like(sum);
  if (dropout.p <= 0.0) {
    return {gradient,
            backwardAll<T>(gradOutput, sum, scale, mean, std, gradSum, form, gradient, nothing)};
  }
  auto dropped = at::empty_like(sum);
  const auto features = sum.size(-1);
  const auto* from = gradient.template const_data_ptr<T>();
  auto* to = dropped.template mutable_data_ptr<T>();
  const RowDropper<T> drop(dropout.p, dropout.seed, features);
  auto norm =
      backwardAll<T>(gradOutput, sum, scale, mean, std, gradSum, form, gradient, [&](int64_t row) {
        const auto start = row * features;
        drop(row, from + start, /*residual=*/nullptr, to + start);
      });
  return {std::move(dropped), std::move(norm)};
}

at::Tensor contiguousOrNone(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.contiguous() : tensor;
}

}  // namespace

void normRow(const float* input, const float* scale, const float* shift, float* output,
             int64_t features, const NormForm& form) {
  forwardRow(input, scale, shift, output, RowForm<float>(form, features));
}

NormResult normRows(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                    const NormForm& form) {
  const auto x = input.contiguous();
  const auto scales = scale.contiguous();
  const auto shifts = contiguousOrNone(shift);
  return x.scalar_type() == at::kDouble ? forwardAll<double>(x, scales, shifts, form, nothing)
                                        : forwardAll<float>(x, scales, shifts, form, nothing);
}

NormGradients normRowsBackward(const at::Tensor& gradOutput, const at::Tensor& input,
                               const at::Tensor& scale, const at::Tensor& mean,
                               const at::Tensor& std, const at::Tensor& gradSum,
                               const NormForm& form, bool wantsInput) {
  const auto dy = gradOutput.contiguous();
  const auto x = input.contiguous();
  const auto scales = scale.contiguous();
  const auto added = contiguousOrNone(gradSum);
  const auto dx = wantsInput ? at::empty_like(x) : at::Tensor();
  return x.scalar_type() == at::kDouble
             ? backwardAll<double>(dy, x, scales, mean, std, added, form, dx, nothing)
             : backwardAll<float>(dy, x, scales, mean, std, added, form, dx, nothing);
}

DroppedSumNorm sumNormRows(const at::Tensor& input, const RowsDropout& dropout,
                           const at::Tensor& residual, const at::Tensor& scale,
                           const at::Tensor& shift, const NormForm& form) {
  const auto terms = input.contiguous();
  const auto residuals = residual.contiguous();
  const auto scales = scale.contiguous();
  const auto shifts = contiguousOrNone(shift);
  return residuals.scalar_type() == at::kDouble
             ? sumForward<double>(terms, dropout, residuals, scales, shifts, form)
             : sumForward<float>(terms, dropout, residuals, scales, shifts, form);
}

DroppedSumNormGradients sumNormRowsBackward(const at::Tensor& gradOutput, const at::Tensor& gradSum,
                                            const at::Tensor& sum, const RowsDropout& dropout,
                                            const at::Tensor& scale, const at::Tensor& mean,
                                            const at::Tensor& std, const NormForm& form) {
  const auto dy = gradOutput.contiguous();
  const auto added = contiguousOrNone(gradSum);
  const auto x = sum.contiguous();
  const auto scales = scale.contiguous();
  return x.scalar_type() == at::kDouble
             ? sumBackward<double>(dy, added, x, dropout, scales, mean, std, form)
             : sumBackward<float>(dy, added, x, dropout, scales, mean, std, form);
}

}  // namespace torchformer::core
