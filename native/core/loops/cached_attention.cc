// Attention of one query to a cache. All heads of a cached row are read together, because they are
// neighbors in memory.

#include "core/loops/cached_attention.h"

#include "core/loops/simd.h"

namespace torchformer::core {

namespace {

TF_INLINE float dot(const float* a, const float* b, int64_t size) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

/// Sizes of heads that the compiler knows get loops without remainders.
template <int64_t known>
TF_INLINE void attend(const CachedAttention& a) {
  const int64_t size = known == 0 ? a.size : known;
  const auto heads = a.heads;
  const auto count = a.count;
  const auto width = heads * size;
  for (int64_t t = 0; t < count; ++t) {
    const float* const key = a.rows[t];
    for (int64_t h = 0; h < heads; ++h) {
      a.scores[h * count + t] = a.scale * dot(a.query + h * size, key + h * size, size);
    }
  }
  for (int64_t h = 0; h < heads; ++h) {
    float* const scores = a.scores + h * count;
    float highest = scores[0];
#pragma omp simd reduction(max : highest)
    for (int64_t t = 0; t < count; ++t) highest = scores[t] > highest ? scores[t] : highest;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t t = 0; t < count; ++t) {
      const float power = vectorExp(scores[t] - highest);
      scores[t] = power;
      sum += power;
    }
    const float factor = 1.0F / sum;
#pragma omp simd
    for (int64_t t = 0; t < count; ++t) scores[t] *= factor;
  }
  for (int64_t i = 0; i < width; ++i) a.output[i] = 0;
  for (int64_t t = 0; t < count; ++t) {
    const float* const value = a.rows[t] + width;
    for (int64_t h = 0; h < heads; ++h) {
      const float weight = a.scores[h * count + t];
      float* const output = a.output + h * size;
      const float* const from = value + h * size;
#pragma omp simd
      for (int64_t i = 0; i < size; ++i) output[i] += weight * from[i];
    }
  }
}

TF_VECTORIZED void attend32(const CachedAttention& a) { attend<32>(a); }
TF_VECTORIZED void attend64(const CachedAttention& a) { attend<64>(a); }
TF_VECTORIZED void attendAny(const CachedAttention& a) { attend<0>(a); }

}  // namespace

void attendCached(const CachedAttention& attention) {
  if (attention.size == 64) return attend64(attention);
  if (attention.size == 32) return attend32(attention);
  attendAny(attention);
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
