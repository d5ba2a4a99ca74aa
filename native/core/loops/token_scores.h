#pragma once

#include <cstdint>
#include <limits>
#include <vector>

// What searches need of the logits of a row. -infinity marks tokens that are ruled out. Among equal
// scores, the lower id comes first.

namespace torchformer::core {

struct ScoredToken {
  int32_t token;
  float score;
};

/// Whether a comes before b.
inline bool isBetter(const ScoredToken& a, const ScoredToken& b) {
  return a.score > b.score || (a.score == b.score && a.token < b.token);
}

struct BestToken {
  ScoredToken best;
  /// Whether all scores but those of -infinity are finite.
  bool isFinite;

  /// All tokens are ruled out, or no score is finite.
  bool isNone() const { return !(best.score > -std::numeric_limits<float>::infinity()); }
};

BestToken bestToken(const float* scores, int64_t count);

/// The `most` best tokens, in order; fewer if there are fewer that are not ruled out.
void bestTokens(const float* scores, int64_t count, int64_t most, std::vector<ScoredToken>& found);

/// log(sum of exp(score)), `highest` being the highest score.
float logSumExp(const float* scores, int64_t count, float highest);

/// sums += softmax(scores). Sums become NaN if a score is NaN or +infinity.
void addProbabilities(const float* scores, int64_t count, float* sums);

/// sums = log(sums / divisor)
void logarithms(float* sums, int64_t count, float divisor);

}  // namespace torchformer::core
