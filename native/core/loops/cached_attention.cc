// Attention of one query to a cache, a head at a time: the query stays in registers for the scores,
// and the sum of values for the output.

#include "core/loops/cached_attention.h"

#include <limits>

#include "core/loops/vector.h"

namespace torchformer::core {

namespace {

/// A multiple of the number of lanes of any vector.
constexpr int64_t anyLanes = 16;

constexpr float log2e = 1.44269504088896341F;

/// The sums of the lanes of `size` vectors, in their order. Each round adds neighbors of two
/// vectors and keeps both sums, so that as many vectors as lanes end in one.
template <int bytes>
TF_INLINE typename Lanes<float, bytes>::Vector laneSums(typename Lanes<float, bytes>::Vector (
    &vectors)[static_cast<size_t>(Lanes<float, bytes>::size)]) {
  using Vector = typename Lanes<float, bytes>::Vector;
  constexpr int size = Lanes<float, bytes>::size;
  constexpr auto all = std::make_integer_sequence<int, size>();
#pragma GCC unroll 4
  for (int half = size / 2; half >= 1; half /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) {
      vectors[i] = interleaved<Vector, 0>(vectors[i], vectors[i + half], all) +
                   interleaved<Vector, size / 2>(vectors[i], vectors[i + half], all);
    }
  }
  return vectors[0];
}

template <int bytes>
TF_INLINE float highestLane(const typename Lanes<float, bytes>::Vector& vector) {
  float highest = vector[0];
  for (int i = 1; i < Lanes<float, bytes>::size; ++i) {
    highest = vector[i] > highest ? vector[i] : highest;
  }
  return highest;
}

/// weights[t] = exp(score) / sum; `scores` are in units of log2, with -infinity after the last.
template <int bytes>
TF_INLINE void softmaxRow(float* scores, int64_t columns) {
  using Vector = typename Lanes<float, bytes>::Vector;
  constexpr int size = Lanes<float, bytes>::size;
  auto most = loadVector<Vector>(scores);
  for (int64_t t = size; t < columns; t += size) {
    const auto some = loadVector<Vector>(scores + t);
    most = some > most ? some : most;
  }
  const float highest = highestLane<bytes>(most);
  Vector sums{};
  for (int64_t t = 0; t < columns; t += size) {
    const auto power = vectorExp2<bytes>(Vector(loadVector<Vector>(scores + t) - highest));
    storeVector(scores + t, power);
    sums += power;
  }
  float sum = 0;
  for (int i = 0; i < size; ++i) sum += sums[i];
  const float factor = 1.0F / sum;
  for (int64_t t = 0; t < columns; t += size) {
    storeVector(scores + t, Vector(loadVector<Vector>(scores + t) * factor));
  }
}

/// Heads of `vectors` whole vectors.
template <int bytes, int vectors>
TF_INLINE void attendWhole(const CachedAttention& a) {
  using Vector = typename Lanes<float, bytes>::Vector;
  constexpr int size = Lanes<float, bytes>::size;
  const auto width = a.heads * a.size;
  const float scale = a.scale * log2e;
  const auto columns = (a.count + size - 1) / size * size;
  for (int64_t h = 0; h < a.heads; ++h) {
    const float* const query = a.query + h * a.size;
    float* const scores = a.weights + h * a.weightsStride;
    for (int64_t start = 0; start < columns; start += size) {
      Vector sums[size];
#pragma GCC unroll 16
      for (int i = 0; i < size; ++i) {
        // Beyond the last row, that row again.
        const auto t = start + i < a.count ? start + i : a.count - 1;
        const float* const key = a.rows[t] + h * a.size;
        Vector sum = loadVector<Vector>(query) * loadVector<Vector>(key);
#pragma GCC unroll 16
        for (int v = 1; v < vectors; ++v) {
          sum += loadVector<Vector>(query + v * size) * loadVector<Vector>(key + v * size);
        }
        sums[i] = sum;
      }
      storeVector(scores + start, Vector(laneSums<bytes>(sums) * scale));
    }
    for (auto t = a.count; t < columns; ++t) {
      scores[t] = -std::numeric_limits<float>::infinity();
    }
    softmaxRow<bytes>(scores, columns);
    Vector even[vectors] = {};
    Vector odd[vectors] = {};
    int64_t t = 0;
    for (; t + 2 <= a.count; t += 2) {
      const float* const value = a.rows[t] + width + h * a.size;
      const float* const next = a.rows[t + 1] + width + h * a.size;
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) {
        even[v] += scores[t] * loadVector<Vector>(value + v * size);
        odd[v] += scores[t + 1] * loadVector<Vector>(next + v * size);
      }
    }
    if (t < a.count) {
      const float* const value = a.rows[t] + width + h * a.size;
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) even[v] += scores[t] * loadVector<Vector>(value + v * size);
    }
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      storeVector(a.output + h * a.size + v * size, Vector(even[v] + odd[v]));
    }
  }
}

/// Heads of any size.
template <int bytes>
TF_INLINE void attendAny(const CachedAttention& a) {
  const auto width = a.heads * a.size;
  const auto columns = (a.count + Lanes<float, bytes>::size - 1) / Lanes<float, bytes>::size *
                       Lanes<float, bytes>::size;
  for (int64_t h = 0; h < a.heads; ++h) {
    const float* const query = a.query + h * a.size;
    float* const scores = a.weights + h * a.weightsStride;
    for (int64_t t = 0; t < columns; ++t) {
      scores[t] = -std::numeric_limits<float>::infinity();
      if (t >= a.count) continue;
      const float* const key = a.rows[t] + h * a.size;
      float sum = 0;
      for (int64_t i = 0; i < a.size; ++i) sum += query[i] * key[i];
      scores[t] = sum * a.scale * log2e;
    }
    softmaxRow<bytes>(scores, columns);
    float* const output = a.output + h * a.size;
    for (int64_t i = 0; i < a.size; ++i) output[i] = 0;
    for (int64_t t = 0; t < a.count; ++t) {
      const float* const value = a.rows[t] + width + h * a.size;
      for (int64_t i = 0; i < a.size; ++i) output[i] += scores[t] * value[i];
    }
  }
}

template <int bytes>
TF_INLINE void attendBy(const CachedAttention& a) {
  constexpr int size = Lanes<float, bytes>::size;
  if (a.size == 64) return attendWhole<bytes, 64 / size>(a);
  if (a.size == 32) return attendWhole<bytes, 32 / size>(a);
  if (a.size == 128) return attendWhole<bytes, 128 / size>(a);
  attendAny<bytes>(a);
}

TF_PLAIN void attendPlain(const CachedAttention& a) { attendBy<16>(a); }
#if TF_HAS_WIDE_VECTORS
TF_AVX2 void attendAvx2(const CachedAttention& a) { attendBy<32>(a); }
TF_AVX512 void attendAvx512(const CachedAttention& a) { attendBy<64>(a); }
#endif

}  // namespace

int64_t cachedWeights(int64_t count) { return (count + anyLanes - 1) / anyLanes * anyLanes; }

void attendCached(const CachedAttention& attention) {
#if TF_HAS_WIDE_VECTORS
  if (widestVectors() == 64) return attendAvx512(attention);
  if (widestVectors() == 32) return attendAvx2(attention);
#endif
  attendPlain(attention);
}

void rotateHeads(float* vectors, const float* table, int64_t heads, int64_t size) {
  for (int64_t h = 0; h < heads; ++h) {
    float* const head = vectors + h * size;
    for (int64_t i = 0; i < size; i += 2) {
      const float first = head[i];
      const float second = head[i + 1];
      const float sine = table[i];
      const float cosine = table[i + 1];
      head[i] = first * cosine - second * sine;
      head[i + 1] = second * cosine + first * sine;
    }
  }
}

}  // namespace torchformer::core
