#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/loops/token_scores.h"

// The search for the target of one source: greedy, beam or sampling. It knows no model: it is given
// the logits of the next token of each unfinished hypothesis, and says how they go on.

namespace torchformer::core {

/// A penalty for short targets, by which the sum of log-probabilities is divided. The end token
/// counts.
struct LengthPenalty {
  double alpha = 0;
  bool gnmt = false;  // ((5 + length) / 6)^alpha instead of length^alpha

  double of(int64_t length) const;
};

struct SearchOptions {
  int64_t beam = 1;
  int64_t nBest = 1;
  LengthPenalty lengthPenalty;
  double coveragePenalty = 0;  // beta of GNMT's
  double patience = 1;         // a beam ends when beam * patience hypotheses have ended
  int64_t minLength = 0;       // tokens before the end token
  int64_t maxLength = 1;       // tokens, the end token counted
  double repetitionPenalty = 1;
  int64_t noRepeatNgram = 0;        // 0: none
  std::vector<int32_t> suppressed;  // tokens that are never generated
  std::vector<int32_t> prefix;      // tokens that every target begins with
  bool forced = false;              // the prefix is the whole target, with its end token
  double temperature = 0;           // of sampling; 0: none
  int64_t topK = 0;                 // 0: all
  double topP = 1;
  uint64_t seed = 0;
  bool wantsScores = false;
  bool wantsAttention = false;
  int64_t attentionLayer = -1;  // -1: the last
  int64_t attentionHead = -1;   // -1: the mean of all

  /// The most hypotheses at a time.
  int64_t mostRows() const { return temperature > 0 ? nBest : beam; }
};

/// An unfinished target.
struct Hypothesis {
  std::vector<int32_t> tokens;
  /// Of each token that was fed to the model: the first token, then `tokens`.
  std::vector<int32_t> cells;
  double score = 0;  // sum of log-probabilities
  std::vector<float> tokenScores;
  std::vector<float> attention;  // [tokens, source length], if wanted
  std::vector<float> coverage;   // [source length], with a coverage penalty
};

struct FinishedTarget {
  std::vector<int32_t> tokens;     // without the end token
  bool ended = false;              // with the end token
  double score = 0;                // with penalties
  std::vector<float> tokenScores;  // the end token's is the last, if it ended
  std::vector<float> attention;    // likewise
};

class Search {
 public:
  Search(SearchOptions options, int32_t end, int64_t sourceLength);

  const SearchOptions& options() const { return options_; }

  /// The unfinished hypotheses; their logits are given in this order.
  std::vector<Hypothesis>& live() { return live_; }

  bool needsAttention() const { return options_.wantsAttention || options_.coveragePenalty > 0; }

  /// Looks at the logits of hypothesis `index`, which it may change; may be called for several
  /// hypotheses at a time on several threads.
  /// @param attention of the step [source length]; null unless `needsAttention`
  void examine(std::size_t index, float* logits, int64_t vocabulary, const float* attention);

  /// Chooses how the hypotheses go on, once all have been examined.
  void advance();

  bool isDone() const { return live_.empty(); }
  /// The logits of a hypothesis were not finite.
  bool isFaulty() const { return faulty_; }
  /// The best targets, in order; at most nBest.
  std::vector<FinishedTarget>& results() { return finished_; }
  /// The tokens that all unfinished hypotheses begin with.
  std::vector<int32_t> commonTokens() const;

 private:
  /// How a hypothesis may go on.
  struct Continuation {
    std::size_t parent;
    ScoredToken token;  // with its log-probability
    double score;       // of the whole
  };
  struct Examined {
    std::vector<ScoredToken> best;
    const float* attention = nullptr;
    bool isFinite = true;
  };

  void restrict(const Hypothesis& hypothesis, float* logits, int64_t vocabulary) const;
  void sample(std::size_t index, float* logits, int64_t vocabulary, std::vector<ScoredToken>& best);
  void advanceEach();
  void advanceBeam();
  Hypothesis continued(Hypothesis parent, const Continuation& continuation) const;
  void finish(Hypothesis hypothesis, bool ended);
  void finishAll();
  double scoreOf(const Hypothesis& hypothesis, int64_t length) const;
  double highestScoreOfLive() const;
  bool isForcedStep() const { return step_ < std::ssize(options_.prefix); }

  SearchOptions options_;
  int32_t end_;
  int64_t sourceLength_;
  int64_t step_ = 0;  // tokens of the unfinished hypotheses
  std::vector<Hypothesis> live_;
  std::vector<Examined> examined_;
  std::vector<FinishedTarget> finished_;
  std::vector<uint64_t> streams_;  // of random numbers, one for each sample
  bool faulty_ = false;
};

}  // namespace torchformer::core
