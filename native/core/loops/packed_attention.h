#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

// The loops of packed_attention for one head of one sequence.

namespace torchformer::core {

/// A head of one sequence within rows of all heads: `rows` vectors of `width` elements, `stride`
/// elements apart.
template <typename T>
struct HeadRows {
  T* data;
  int64_t rows;
  int64_t stride;
  T* row(int64_t index) const { return data + index * stride; }
};

/// The settings of one call, shared by all heads.
struct AttentionSettings {
  int64_t heads;
  int64_t width;  // of a head
  bool causal;
  double dropoutP;
  uint64_t seed;
  double scoreScale() const;
};

/// The position of the head's queries among the rows of dropout masks: query i has row
/// (firstQuery + i) * heads + head.
struct HeadPlace {
  int64_t firstQuery;
  int64_t head;
};

/// Maximum number of scores that a head needs at a time.
int64_t scoreBufferSize(int64_t queries, int64_t keys);

/// output = drop(softmax(q k^T * scale)) v; `logSums` gets log(sum(exp)) of each query's scores.
/// `scores`: a buffer of scoreBufferSize numbers.
template <typename T>
void attendHead(const HeadRows<const T>& query, const HeadRows<const T>& key,
                const HeadRows<const T>& value, const HeadRows<T>& output, T* logSums,
                int64_t logSumStride, const AttentionSettings& settings, const HeadPlace& place,
                T* scores);

/// The gradients of attendHead, written to gradQuery, added to gradKey and gradValue.
/// `scores`, `gradScores`: buffers of scoreBufferSize numbers.
template <typename T>
void attendHeadBackward(const HeadRows<const T>& gradOutput, const HeadRows<const T>& query,
                        const HeadRows<const T>& key, const HeadRows<const T>& value,
                        const T* logSums, int64_t logSumStride, const HeadRows<T>& gradQuery,
                        const HeadRows<T>& gradKey, const HeadRows<T>& gradValue,
                        const AttentionSettings& settings, const HeadPlace& place, T* scores,
                        T* gradScores);

}  // namespace torchformer::core
