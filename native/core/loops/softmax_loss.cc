// Softmax, loss and gradient of one row of logits, in passes that the compiler vectorizes.

#include "core/loops/softmax_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/loops/simd.h"

namespace torchformer::core {

namespace {

/// The highest of value(0) to value(n - 1), each computed once; NaN is never it. In 64 parallel
/// maxima: with a single vector, each comparison would wait for the previous one.
template <typename Value>
TF_INLINE auto highestOf(int64_t n, const Value& value) {
  using T = decltype(value(0));
  constexpr int64_t lanes = 64;
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  T found[lanes];
  for (T& one : found) one = lowest;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
#pragma omp simd
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const T one = value(i + lane);
      found[lane] = one > found[lane] ? one : found[lane];
    }
  }
  T highest = lowest;
  for (; i < n; ++i) {
    const T one = value(i);
    highest = one > highest ? one : highest;
  }
  for (const T one : found) highest = one > highest ? one : highest;
  return highest;
}

template <typename T>
TF_INLINE RowResult lossLoop(T* logits, const T* bias, int64_t classes, int64_t target,
                             const SmoothedTarget& smoothed, T scale, bool wantsGradient) {
  const T highest =
      bias == nullptr
          ? highestOf(classes, [=](int64_t i) TF_INLINE_LAMBDA { return logits[i]; })
          : highestOf(classes, [=](int64_t i) TF_INLINE_LAMBDA { return logits[i] += bias[i]; });
  // NaN must not be hidden by a finite maximum.
  const T atTarget = logits[target];
  const int64_t excluded = smoothed.excluded;
  const T atExcluded = excluded < 0 ? highest : logits[excluded];
  // Like argmax: of equal scores the first one counts.
  int32_t earlier = 0;
  if (atTarget >= highest) {
#pragma omp simd reduction(+ : earlier)
    for (int64_t i = 0; i < target; ++i) earlier += logits[i] == highest ? 1 : 0;
  }
  const bool isFirstBest = atTarget >= highest && earlier == 0;
  // Sums of blocks: a single float32 sum over a whole vocabulary would lose precision.
  constexpr int64_t block = 4096;
  double total = 0;
  double logitSum = 0;
  for (int64_t start = 0; start < classes; start += block) {
    const int64_t end = std::min(classes, start + block);
    T sum = 0;
    if (smoothed.everywhere > 0) {
#pragma omp simd reduction(+ : sum)
      for (int64_t i = start; i < end; ++i) sum += logits[i] - highest;
      logitSum += static_cast<double>(sum);
      sum = 0;
    }
#pragma omp simd reduction(+ : sum)
    for (int64_t i = start; i < end; ++i) {
      const T e = vectorExp(logits[i] - highest);
      logits[i] = e;
      sum += e;
    }
    total += static_cast<double>(sum);
  }
  const double logSum = std::log(total);
  const double mean = (logitSum - static_cast<double>(atExcluded - highest)) /
                      static_cast<double>(smoothed.sharers);
  const double loss =
      RowTarget<double>(smoothed).loss(logSum, static_cast<double>(atTarget - highest), mean);
  if (wantsGradient) {
    const T factor = static_cast<T>(static_cast<double>(scale) / total);
    const RowTarget<T> row(smoothed);
    const T everywhere = scale * row.everywhere;
#pragma omp simd
    for (int64_t i = 0; i < classes; ++i) logits[i] = logits[i] * factor - everywhere;
    logits[target] -= scale * row.extra;
    if (excluded >= 0) logits[excluded] += everywhere;
  }
  return {loss, isFirstBest};
}

}  // namespace

TF_VECTORIZED RowResult lossOfRow(float* logits, const float* bias, int64_t classes, int64_t target,
                                  const SmoothedTarget& smoothed, float scale, bool wantsGradient) {
  return lossLoop(logits, bias, classes, target, smoothed, scale, wantsGradient);
}

RowResult lossOfRow(double* logits, const double* bias, int64_t classes, int64_t target,
                    const SmoothedTarget& smoothed, double scale, bool wantsGradient) {
  return lossLoop(logits, bias, classes, target, smoothed, scale, wantsGradient);
}

TF_VECTORIZED void addRow(float* sum, const float* row, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) sum[i] += row[i];
}

void addRow(double* sum, const double* row, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) sum[i] += row[i];
}

}  // namespace torchformer::core
