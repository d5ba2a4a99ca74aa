#include "core/loops/token_scores.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "core/loops/simd.h"

namespace torchformer::core {

namespace {

constexpr float lowest = -std::numeric_limits<float>::infinity();

/// Only blocks with a maximum that is high enough are searched for tokens.
constexpr int64_t block = 64;

/// The highest score of each block; returns 0, or NaN if a score is NaN or +infinity.
TF_VECTORIZED float blockMaxima(const float* scores, int64_t count, float* maxima) {
  float fault = 0;
  int64_t start = 0;
  for (; start + block <= count; start += block) {
    float highest = lowest;
    float faults = 0;
#pragma omp simd reduction(max : highest) reduction(+ : faults)
    for (int64_t i = 0; i < block; ++i) {
      const float score = scores[start + i];
      highest = score > highest ? score : highest;
      const float checked = score == lowest ? 0.0F : score;
      faults += checked - checked;
    }
    *maxima++ = highest;
    fault += faults;
  }
  if (start == count) return fault;
  float highest = lowest;
  for (; start < count; ++start) {
    const float score = scores[start];
    highest = score > highest ? score : highest;
    const float checked = score == lowest ? 0.0F : score;
    fault += checked - checked;
  }
  *maxima = highest;
  return fault;
}

std::vector<float>& maximaOfThread(int64_t count) {
  static thread_local std::vector<float> maxima;
  maxima.resize(static_cast<size_t>((count + block - 1) / block));
  return maxima;
}

}  // namespace

BestToken bestToken(const float* scores, int64_t count) {
  auto& maxima = maximaOfThread(count);
  const float fault = blockMaxima(scores, count, maxima.data());
  const auto highest = std::max_element(maxima.begin(), maxima.end());
  auto place = (highest - maxima.begin()) * block;
  // If all are NaN, none is equal to the maximum.
  while (place < count && scores[place] != *highest) ++place;
  return {{static_cast<int32_t>(place), *highest}, fault == 0.0F};
}

void bestTokens(const float* scores, int64_t count, int64_t most, std::vector<ScoredToken>& found) {
  found.clear();
  auto& maxima = maximaOfThread(count);
  blockMaxima(scores, count, maxima.data());
  // As many blocks as tokens are wanted have a score of at least this.
  float threshold = lowest;
  if (static_cast<int64_t>(maxima.size()) > most) {
    static thread_local std::vector<float> sorted;
    sorted = maxima;
    const auto last = sorted.begin() + most - 1;
    std::nth_element(sorted.begin(), last, sorted.end(), std::greater<>());
    threshold = *last;
  }
  for (size_t i = 0; i < maxima.size(); ++i) {
    if (maxima[i] < threshold) continue;
    const auto start = static_cast<int64_t>(i) * block;
    for (auto token = start; token < std::min(count, start + block); ++token) {
      const float score = scores[token];
      if (score >= threshold && score > lowest) {
        found.push_back({static_cast<int32_t>(token), score});
      }
    }
  }
  const auto kept = std::min(most, static_cast<int64_t>(found.size()));
  std::partial_sort(found.begin(), found.begin() + kept, found.end(), isBetter);
  found.resize(static_cast<size_t>(kept));
}

TF_VECTORIZED float logSumExp(const float* scores, int64_t count, float highest) {
  // Sums of blocks: one float32 sum over a whole vocabulary would lose precision.
  constexpr int64_t part = 4096;
  double total = 0;
  for (int64_t start = 0; start < count; start += part) {
    const auto end = count - start < part ? count : start + part;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = start; i < end; ++i) sum += vectorExp(scores[i] - highest);
    total += static_cast<double>(sum);
  }
  return highest + static_cast<float>(std::log(total));
}

TF_VECTORIZED void addProbabilities(const float* scores, int64_t count, float* sums) {
  float highest = lowest;
#pragma omp simd reduction(max : highest)
  for (int64_t i = 0; i < count; ++i) highest = scores[i] > highest ? scores[i] : highest;
  const float sum = logSumExp(scores, count, highest);
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    // NaN, which the exponential of a number below all others would hide, stays NaN.
    sums[i] += vectorExp(scores[i] - sum) + (sum - sum);
  }
}

void logarithms(float* sums, int64_t count, float divisor) {
  for (int64_t i = 0; i < count; ++i) sums[i] = std::log(sums[i] / divisor);
}

}  // namespace torchformer::core
