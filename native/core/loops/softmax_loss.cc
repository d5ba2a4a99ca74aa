// Softmax, loss and gradient of one row of logits, in passes that the compiler vectorizes.

#include "core/loops/softmax_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/loops/simd.h"

namespace torchformer::core {

namespace {

template <typename T>
TF_INLINE RowResult lossLoop(T* logits, const T* bias, int64_t classes, int64_t target, T smoothing,
                             T scale, bool wantsGradient) {
  if (bias != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < classes; ++i) logits[i] += bias[i];
  }
  T highest = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : highest)
  for (int64_t i = 0; i < classes; ++i) highest = logits[i] > highest ? logits[i] : highest;
  // NaN never wins a comparison, but must not be hidden by a finite maximum.
  const T atTarget = logits[target];
  // Like argmax: of equal scores the first one counts.
  const bool isFirstBest =
      atTarget >= highest && std::find(logits, logits + target, highest) == logits + target;
  // Sums of blocks: a single float32 sum over a whole vocabulary would lose precision.
  constexpr int64_t block = 4096;
  double total = 0;
  double logitSum = 0;
  for (int64_t start = 0; start < classes; start += block) {
    const int64_t end = std::min(classes, start + block);
    T sum = 0;
    if (smoothing > 0) {
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
  const double count = static_cast<double>(classes);
  const double loss =
      static_cast<double>(1 - smoothing) * (logSum - static_cast<double>(atTarget - highest)) +
      (smoothing > 0 ? static_cast<double>(smoothing) * (logSum - logitSum / count) : 0.0);
  if (wantsGradient) {
    const T factor = static_cast<T>(static_cast<double>(scale) / total);
    const T everywhere = scale * smoothing / static_cast<T>(count);
#pragma omp simd
    for (int64_t i = 0; i < classes; ++i) logits[i] = logits[i] * factor - everywhere;
    logits[target] -= scale * (1 - smoothing);
  }
  return {loss, isFirstBest};
}

}  // namespace

TF_VECTORIZED RowResult lossOfRow(float* logits, const float* bias, int64_t classes, int64_t target,
                                  float smoothing, float scale, bool wantsGradient) {
  return lossLoop(logits, bias, classes, target, smoothing, scale, wantsGradient);
}

RowResult lossOfRow(double* logits, const double* bias, int64_t classes, int64_t target,
                    double smoothing, double scale, bool wantsGradient) {
  return lossLoop(logits, bias, classes, target, smoothing, scale, wantsGradient);
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
