#include "core/loops/norm.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

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

/// The sum of term(0) to term(n - 1), in 32 parallel sums: with a single vector, each addition
/// would wait for the previous one.
template <typename T, typename Term>
TF_INLINE T sumOf(int64_t n, const Term& term) {
  constexpr int64_t lanes = 32;
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

/// Adds to `scaleSums` and `shiftSums`; writes `dx` unless null.
template <typename T>
TF_INLINE void backwardLoop(const T* dy, const T* x, const T* scale, const Statistics<T>& row,
                            T* dx, T* scaleSums, T* shiftSums, const RowForm<T>& form) {
  const auto n = form.features;
  const T mean = row.mean;
  const T spread = form.spreadOf(row.std);
  const T reciprocal = T(1) / spread;
  T sum = 0;
  T along = 0;
#pragma omp simd reduction(+ : sum, along)
  for (int64_t i = 0; i < n; ++i) {
    const T z = (x[i] - mean) * reciprocal;
    const T u = dy[i] * scale[i];
    sum += u;
    along += u * z;
    scaleSums[i] += dy[i] * z;
    shiftSums[i] += dy[i];
  }
  if (dx == nullptr) return;
  const T upstreamMean = form.centred ? sum / static_cast<T>(n) : T(0);
  // In a row of equal values, d std / dx is 0 / 0, taken as 0.
  const T length = form.epsOutside ? row.std : spread;
  const T factor = length == T(0) ? T(0) : along / (length * form.divisor);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const T z = (x[i] - mean) * reciprocal;
    dx[i] = (dy[i] * scale[i] - upstreamMean) * reciprocal - z * factor;
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

TF_VECTORIZED void backwardRow(const float* dy, const float* x, const float* scale,
                               const Statistics<float>& row, float* dx, float* scaleSums,
                               float* shiftSums, const RowForm<float>& form) {
  backwardLoop(dy, x, scale, row, dx, scaleSums, shiftSums, form);
}

void backwardRow(const double* dy, const double* x, const double* scale,
                 const Statistics<double>& row, double* dx, double* scaleSums, double* shiftSums,
                 const RowForm<double>& form) {
  backwardLoop(dy, x, scale, row, dx, scaleSums, shiftSums, form);
}

int64_t rowsPerTask(int64_t features) { return std::max<int64_t>(1, grain / features); }

template <typename T>
NormResult forwardAll(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                      const NormForm& form) {
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
      const auto found =
          forwardRow(x + row * features, scales, shifts, y + row * features, rowForm);
      means[row] = found.mean;
      stds[row] = found.std;
    }
  });
  return result;
}

template <typename T>
NormGradients backwardAll(const at::Tensor& gradOutput, const at::Tensor& input,
                          const at::Tensor& scale, const at::Tensor& mean, const at::Tensor& std,
                          const NormForm& form, bool wantsInput) {
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
  if (wantsInput) result.input = at::empty_like(input);
  const auto* dy = gradOutput.const_data_ptr<T>();
  const auto* x = input.const_data_ptr<T>();
  const auto* scales = scale.const_data_ptr<T>();
  const auto* means = mean.const_data_ptr<T>();
  const auto* stds = std.const_data_ptr<T>();
  auto* dx = wantsInput ? result.input.template mutable_data_ptr<T>() : nullptr;
  auto* blockSums = sums.template mutable_data_ptr<T>();
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      auto* scaleSums = blockSums + block * 2 * features;
      const auto last = std::min(rows, (block + 1) * blockRows);
      for (int64_t row = block * blockRows; row < last; ++row) {
        const auto start = row * features;
        backwardRow(dy + start, x + start, scales, {means[row], stds[row]},
                    dx == nullptr ? nullptr : dx + start, scaleSums, scaleSums + features, rowForm);
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

}  // namespace

NormResult normRows(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                    const NormForm& form) {
  const auto x = input.contiguous();
  const auto scales = scale.contiguous();
  const auto shifts = shift.defined() ? shift.contiguous() : shift;
  return x.scalar_type() == at::kDouble ? forwardAll<double>(x, scales, shifts, form)
                                        : forwardAll<float>(x, scales, shifts, form);
}

NormGradients normRowsBackward(const at::Tensor& gradOutput, const at::Tensor& input,
                               const at::Tensor& scale, const at::Tensor& mean,
                               const at::Tensor& std, const NormForm& form, bool wantsInput) {
  const auto dy = gradOutput.contiguous();
  const auto x = input.contiguous();
  const auto scales = scale.contiguous();
  return x.scalar_type() == at::kDouble
             ? backwardAll<double>(dy, x, scales, mean, std, form, wantsInput)
             : backwardAll<float>(dy, x, scales, mean, std, form, wantsInput);
}

}  // namespace torchformer::core
