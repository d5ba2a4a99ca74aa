#pragma once

#include <cstdint>

// What attention does with one head of one sequence, in parts: small products, and the softmax
// between them.
//
// Scores are held transposed, a row for each key and a lane for each query. So maxima and sums over
// the keys are those of whole vectors, with no sums across lanes; a vector past the last query is
// filled up with unused lanes, whatever the number of keys; and in all products the left factor is
// a number for all lanes.

namespace torchformer::core {

/// out[d][i] = factor * rows[i][d] for `count` rows; zero in further columns, of which there are
/// `columns` in all. `width` and `columns`: multiples of the
/// number of lanes.
template <typename T>
struct Transposition {
  const T* rows;
  int64_t stride;
  int64_t count;
  int64_t width;
  T factor;
  T* out;
  int64_t columns;
};

/// out[i][:] = factors[i * factorStep] * (sum over k of a[i * aRow + k * aDepth] * b[k * bRow + :])
/// + (adds ? out[i][:] : 0). `columns`: a multiple of the number of lanes.
template <typename T>
struct SmallProduct {
  const T* a;
  int64_t aRow;
  int64_t aDepth;
  const T* b;
  int64_t bRow;
  T* out;
  int64_t outRow;
  const T* factors;
  int64_t factorStep;
  int64_t rows;
  int64_t columns;
  int64_t depth;
  bool adds = false;
  /// For triangular matrices, how far beyond the diagonal there are numbers: row i may leave out
  /// the columns before i - columnShift, and the depths below i - depthStart or above i + depthEnd.
  static constexpr int64_t everywhere = int64_t{1} << 60;
  int64_t columnShift = everywhere;
  int64_t depthStart = everywhere;
  int64_t depthEnd = everywhere;
};

/// The keys of the dropout mask's rows first, first + step, ...: see support/dropout_bits.h.
void dropoutRowKeys(uint64_t seed, uint64_t first, uint64_t step, int64_t count, uint32_t* low,
                    uint32_t* high);

/// Scores of a block of queries, in units of log2: [keys][columns].
template <typename T>
struct ScoreBlock {
  T* scores;
  int64_t keys;
  int64_t columns;
  /// With causal attention, the last key that query 0 of the block sees; query i sees i more. -1:
  /// all queries see all keys.
  int64_t causalStart;
  /// The mask of dropout; `low` is null without dropout.
  const uint32_t* low;
  const uint32_t* high;
  uint32_t threshold;
};

/// The functions for one size of vectors.
template <typename T>
struct AttentionParts {
  /// Numbers of a vector. Rows of scores and of right factors have a multiple of it.
  int64_t lanes;

  void (*transposeRows)(const Transposition<T>& t);

  void (*multiply)(const SmallProduct<T>& product);

  /// scores := 2^(score - highest), 0 where dropped; `highest` and `inverse` [columns] get the
  /// highest score and 1 / (sum of all powers) of each query.
  void (*softmax)(const ScoreBlock<T>& block, T* highest, T* inverse);

  /// The same scores again, with `gradients` of the weights that were used, times the factor of
  /// those kept: gradients := those of the scores; scores := the weights, 0 where dropped.
  void (*softmaxGradient)(const ScoreBlock<T>& block, const T* highest, const T* inverse,
                          T* gradients);
};

/// Those for this processor. `T`: float or double.
template <typename T>
const AttentionParts<T>& attentionParts();

template <>
const AttentionParts<float>& attentionParts();
template <>
const AttentionParts<double>& attentionParts();

/// Sets the numbers [keys][columns] at blocked places, where `allowed` is 0: bytes
/// [keys][allowedStride], or [keys] for all columns if allowedStride is 0.
void setBlocked(float* scores, int64_t keys, int64_t columns, const uint8_t* allowed,
                int64_t allowedStride, float value);
void setBlocked(double* scores, int64_t keys, int64_t columns, const uint8_t* allowed,
                int64_t allowedStride, double value);

}  // namespace torchformer::core
