#pragma once

#include <cstdint>

// Attention of one head of one sequence, forward and backward, on one thread.

namespace torchformer::core {

/// A head's part of the rows of one sequence: `rows` vectors, `stride` elements apart.
template <typename T>
struct HeadRows {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t stride = 0;
  T* row(int64_t index) const { return data + index * stride; }
};

/// The settings of one call, shared by all heads.
struct AttentionSettings {
  int64_t width;  // of queries and keys
  int64_t valueWidth;
  bool causal;  // query i sees the keys 0 to i
  double dropoutP;
  uint64_t seed;
  double scoreScale() const;
};

/// Which keys the queries may attend to, as bytes that are 0 where they may not. A null pointer:
/// all. Blocked scores become the lowest finite number, so a query that may attend to nothing gets
/// the same weight for all keys.
struct HeadMask {
  /// [keys][stride], a query in each column, with columns up to a multiple of
  /// maskColumns(queries); or [keys], the same for all queries, with stride 0.
  const uint8_t* allowed = nullptr;
  int64_t stride = 0;
  /// [queries], or [1] with stride 0: 1 for queries whose weights are all zero instead.
  const uint8_t* cleared = nullptr;
};

/// The columns that a row of a mask must have.
int64_t maskColumns(int64_t queries);

/// The inputs of a head. Query i has row firstMaskRow + i * maskRowStep of the dropout mask.
template <typename T>
struct Head {
  HeadRows<const T> query;
  HeadRows<const T> key;
  HeadRows<const T> value;
  HeadMask mask;
  int64_t firstMaskRow;
  int64_t maskRowStep;
};

/// What the backward pass needs of a forward pass, [queries] each: the highest score, in units of
/// log2, and 1 / sum(2^(score - highest)).
template <typename T>
struct SoftmaxSums {
  T* highest;
  T* inverse;
};

/// The number of elements that attendHead and attendHeadBackward need as `scratch`.
template <typename T>
int64_t attentionScratchSize(int64_t queries, int64_t keys, const AttentionSettings& settings);

/// output = drop(softmax(q k^T * scale)) v. `weights`: get the weights after dropout, one row of
/// keys for each query, unless null.
template <typename T>
void attendHead(const Head<T>& head, const HeadRows<T>& output, const SoftmaxSums<T>& sums,
                const HeadRows<T>& weights, const AttentionSettings& settings, T* scratch);

/// The gradients of attendHead. `gradWeights`: of the weights after dropout; may be null.
template <typename T>
void attendHeadBackward(const Head<T>& head, const SoftmaxSums<const T>& sums,
                        const HeadRows<const T>& gradOutput, const HeadRows<const T>& gradWeights,
                        const HeadRows<T>& gradQuery, const HeadRows<T>& gradKey,
                        const HeadRows<T>& gradValue, const AttentionSettings& settings,
                        T* scratch);

}  // namespace torchformer::core
