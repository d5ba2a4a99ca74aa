// Scores and sums of one head of one sequence, in blocks of queries that stay in the cache.
//
// Sequences of a translation corpus have 10 to 50 tokens. Products this small are slower in a
// matrix library than in the loops below, which the compiler vectorizes along the head dimension.

#include "core/loops/packed_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/loops/simd.h"
#include "core/support/dropout_bits.h"

namespace torchformer::core {

namespace {

constexpr int64_t queryBlock = 32;

/// out[i][j] = factor * a_i . b_j
template <typename T>
TF_INLINE void dotRows(const T* a, int64_t aStride, int64_t aRows, const T* b, int64_t bStride,
                       int64_t bRows, int64_t width, T factor, T* out, int64_t outStride) {
  for (int64_t i = 0; i < aRows; ++i) {
    const T* const x = a + i * aStride;
    T* const row = out + i * outStride;
    int64_t j = 0;
    for (; j + 4 <= bRows; j += 4) {
      const T* const y0 = b + j * bStride;
      const T* const y1 = y0 + bStride;
      const T* const y2 = y1 + bStride;
      const T* const y3 = y2 + bStride;
      T s0 = 0;
      T s1 = 0;
      T s2 = 0;
      T s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
      for (int64_t d = 0; d < width; ++d) {
        s0 += x[d] * y0[d];
        s1 += x[d] * y1[d];
        s2 += x[d] * y2[d];
        s3 += x[d] * y3[d];
      }
      row[j] = factor * s0;
      row[j + 1] = factor * s1;
      row[j + 2] = factor * s2;
      row[j + 3] = factor * s3;
    }
    for (; j < bRows; ++j) {
      const T* const y = b + j * bStride;
      T s = 0;
#pragma omp simd reduction(+ : s)
      for (int64_t d = 0; d < width; ++d) s += x[d] * y[d];
      row[j] = factor * s;
    }
  }
}

/// out_i += sum over j of weights[i * rowStep + j * columnStep] * b_j
template <typename T>
TF_INLINE void addWeightedRows(const T* weights, int64_t rowStep, int64_t columnStep, int64_t rows,
                               const T* b, int64_t bStride, int64_t bRows, int64_t width, T* out,
                               int64_t outStride) {
  for (int64_t i = 0; i < rows; ++i) {
    const T* const w = weights + i * rowStep;
    T* const sum = out + i * outStride;
    int64_t j = 0;
    for (; j + 4 <= bRows; j += 4) {
      const T w0 = w[j * columnStep];
      const T w1 = w[(j + 1) * columnStep];
      const T w2 = w[(j + 2) * columnStep];
      const T w3 = w[(j + 3) * columnStep];
      const T* const y0 = b + j * bStride;
      const T* const y1 = y0 + bStride;
      const T* const y2 = y1 + bStride;
      const T* const y3 = y2 + bStride;
#pragma omp simd
      for (int64_t d = 0; d < width; ++d) {
        sum[d] += (w0 * y0[d] + w1 * y1[d]) + (w2 * y2[d] + w3 * y3[d]);
      }
    }
    for (; j < bRows; ++j) {
      const T w0 = w[j * columnStep];
      const T* const y = b + j * bStride;
#pragma omp simd
      for (int64_t d = 0; d < width; ++d) sum[d] += w0 * y[d];
    }
  }
}

/// Multiplies the kept elements of a row by `scale` and zeros the others.
template <typename T>
TF_INLINE void dropRow(T* row, int64_t size, const RowDropout& dropout, T scale) {
#pragma omp simd
  for (int64_t j = 0; j < size; ++j) {
    row[j] = dropout.keeps(static_cast<uint32_t>(j)) ? row[j] * scale : T(0);
  }
}

/// Number of keys that a query may attend to.
TF_INLINE int64_t visibleKeys(bool causal, int64_t query, int64_t keys) {
  return causal ? std::min(keys, query + 1) : keys;
}

struct Drop {
  bool active;
  bool all;
  uint32_t threshold;
  double scale;

  explicit Drop(double p)
      : active(p > 0.0), all(p >= 1.0), threshold(dropThreshold(p)), scale(survivorScale(p)) {}

  template <typename T>
  TF_INLINE void apply(T* row, int64_t size, uint64_t seed, int64_t maskRow) const {
    if (all) {
      std::fill(row, row + size, T(0));
    } else {
      dropRow(row, size, RowDropout(seed, static_cast<uint64_t>(maskRow), threshold),
              static_cast<T>(scale));
    }
  }
};

template <typename T>
TF_INLINE void attend(const HeadRows<const T>& query, const HeadRows<const T>& key,
                      const HeadRows<const T>& value, const HeadRows<T>& output, T* logSums,
                      int64_t logSumStride, const AttentionSettings& settings,
                      const HeadPlace& place, T* scores) {
  const auto width = settings.width;
  const auto factor = static_cast<T>(settings.scoreScale());
  const Drop drop(settings.dropoutP);
  for (int64_t start = 0; start < query.rows; start += queryBlock) {
    const auto count = std::min(queryBlock, query.rows - start);
    const auto keys = visibleKeys(settings.causal, start + count - 1, key.rows);
    dotRows(query.row(start), query.stride, count, key.data, key.stride, keys, width, factor,
            scores, keys);
    for (int64_t i = 0; i < count; ++i) {
      T* const row = scores + i * keys;
      const auto visible = visibleKeys(settings.causal, start + i, key.rows);
      T highest = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : highest)
      for (int64_t j = 0; j < visible; ++j) highest = row[j] > highest ? row[j] : highest;
      T sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t j = 0; j < visible; ++j) {
        const T e = vectorExp(row[j] - highest);
        row[j] = e;
        sum += e;
      }
      const T inverse = T(1) / sum;
#pragma omp simd
      for (int64_t j = 0; j < visible; ++j) row[j] *= inverse;
      std::fill(row + visible, row + keys, T(0));
      logSums[(start + i) * logSumStride] = highest + std::log(sum);
      if (drop.active) {
        drop.apply(row, visible, settings.seed,
                   (place.firstQuery + start + i) * settings.heads + place.head);
      }
      std::fill(output.row(start + i), output.row(start + i) + width, T(0));
    }
    addWeightedRows(scores, keys, 1, count, value.data, value.stride, keys, width,
                    output.row(start), output.stride);
  }
}

template <typename T>
TF_INLINE void attendBackward(const HeadRows<const T>& gradOutput, const HeadRows<const T>& query,
                              const HeadRows<const T>& key, const HeadRows<const T>& value,
                              const T* logSums, int64_t logSumStride, const HeadRows<T>& gradQuery,
                              const HeadRows<T>& gradKey, const HeadRows<T>& gradValue,
                              const AttentionSettings& settings, const HeadPlace& place, T* scores,
                              T* gradScores) {
  const auto width = settings.width;
  const auto factor = static_cast<T>(settings.scoreScale());
  const Drop drop(settings.dropoutP);
  for (int64_t start = 0; start < query.rows; start += queryBlock) {
    const auto count = std::min(queryBlock, query.rows - start);
    const auto keys = visibleKeys(settings.causal, start + count - 1, key.rows);
    dotRows(query.row(start), query.stride, count, key.data, key.stride, keys, width, factor,
            scores, keys);
    dotRows(gradOutput.row(start), gradOutput.stride, count, value.data, value.stride, keys, width,
            T(1), gradScores, keys);
    for (int64_t i = 0; i < count; ++i) {
      T* const weights = scores + i * keys;
      T* const gradient = gradScores + i * keys;
      const auto visible = visibleKeys(settings.causal, start + i, key.rows);
      const auto maskRow = (place.firstQuery + start + i) * settings.heads + place.head;
      const T logSum = logSums[(start + i) * logSumStride];
      if (drop.active) drop.apply(gradient, visible, settings.seed, maskRow);
      T along = 0;
#pragma omp simd reduction(+ : along)
      for (int64_t j = 0; j < visible; ++j) {
        const T p = vectorExp(weights[j] - logSum);
        weights[j] = p;
        along += p * gradient[j];
      }
#pragma omp simd
      for (int64_t j = 0; j < visible; ++j) {
        gradient[j] = factor * weights[j] * (gradient[j] - along);
      }
      if (drop.active) drop.apply(weights, visible, settings.seed, maskRow);
      std::fill(weights + visible, weights + keys, T(0));
      std::fill(gradient + visible, gradient + keys, T(0));
      std::fill(gradQuery.row(start + i), gradQuery.row(start + i) + width, T(0));
    }
    addWeightedRows(gradScores, keys, 1, count, key.data, key.stride, keys, width,
                    gradQuery.row(start), gradQuery.stride);
    addWeightedRows(gradScores, 1, keys, keys, query.row(start), query.stride, count, width,
                    gradKey.data, gradKey.stride);
    addWeightedRows(scores, 1, keys, keys, gradOutput.row(start), gradOutput.stride, count, width,
                    gradValue.data, gradValue.stride);
  }
}

}  // namespace

double AttentionSettings::scoreScale() const { return 1.0 / std::sqrt(static_cast<double>(width)); }

int64_t scoreBufferSize(int64_t queries, int64_t keys) {
  return std::min(queries, queryBlock) * keys;
}

template <>
TF_VECTORIZED void attendHead(const HeadRows<const float>& query, const HeadRows<const float>& key,
                              const HeadRows<const float>& value, const HeadRows<float>& output,
                              float* logSums, int64_t logSumStride,
                              const AttentionSettings& settings, const HeadPlace& place,
                              float* scores) {
  attend(query, key, value, output, logSums, logSumStride, settings, place, scores);
}

template <>
void attendHead(const HeadRows<const double>& query, const HeadRows<const double>& key,
                const HeadRows<const double>& value, const HeadRows<double>& output,
                double* logSums, int64_t logSumStride, const AttentionSettings& settings,
                const HeadPlace& place, double* scores) {
  attend(query, key, value, output, logSums, logSumStride, settings, place, scores);
}

template <>
TF_VECTORIZED void attendHeadBackward(
    const HeadRows<const float>& gradOutput, const HeadRows<const float>& query,
    const HeadRows<const float>& key, const HeadRows<const float>& value, const float* logSums,
    int64_t logSumStride, const HeadRows<float>& gradQuery, const HeadRows<float>& gradKey,
    const HeadRows<float>& gradValue, const AttentionSettings& settings, const HeadPlace& place,
    float* scores, float* gradScores) {
  attendBackward(gradOutput, query, key, value, logSums, logSumStride, gradQuery, gradKey,
                 gradValue, settings, place, scores, gradScores);
}

template <>
void attendHeadBackward(const HeadRows<const double>& gradOutput,
                        const HeadRows<const double>& query, const HeadRows<const double>& key,
                        const HeadRows<const double>& value, const double* logSums,
                        int64_t logSumStride, const HeadRows<double>& gradQuery,
                        const HeadRows<double>& gradKey, const HeadRows<double>& gradValue,
                        const AttentionSettings& settings, const HeadPlace& place, double* scores,
                        double* gradScores) {
  attendBackward(gradOutput, query, key, value, logSums, logSumStride, gradQuery, gradKey,
                 gradValue, settings, place, scores, gradScores);
}

}  // namespace torchformer::core
