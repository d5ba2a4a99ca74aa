#pragma once

#include <cstdint>

namespace torchformer::core {

/// Attention of one query of all heads to rows that hold a key and a value each, as in a decoding
/// step.
struct CachedAttention {
  const float* query;        // [heads * size]
  const float* const* rows;  // [count], each [2 * heads * size]: the key, then the value
  int64_t count;
  int64_t heads;
  int64_t size;
  float scale;     // of the scores
  float* weights;  // [heads, weightsStride]: those of `count` rows; what follows is overwritten
  int64_t weightsStride;  // at least cachedWeights(count)
  float* output;          // [heads * size]
};

/// The elements of `weights` that `count` rows need.
int64_t cachedWeights(int64_t count);

/// output = softmax(scale * query . keys) values, for each head. The bits depend on these rows
/// alone.
void attendCached(const CachedAttention& attention);

/// Rotates pairs of neighboring features of `heads` heads by the angles of a position. `table`
/// [size]: sine and cosine in turn.
void rotateHeads(float* vectors, const float* table, int64_t heads, int64_t size);

}  // namespace torchformer::core
