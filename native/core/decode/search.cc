#include "core/decode/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace torchformer::core {

namespace {

constexpr float ruledOut = -std::numeric_limits<float>::infinity();

/// Coverage below which the logarithm of GNMT's penalty is taken of this: it may be 0.
constexpr double leastCoverage = 1e-9;

/// A random number in [0, 1) from its place in a stream (SplitMix64).
double uniformAt(uint64_t stream, uint64_t place) {
  uint64_t x = stream + (place + 1) * 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  x ^= x >> 31;
  return static_cast<double>(x >> 11) * 0x1.0p-53;
}

}  // namespace

double LengthPenalty::of(int64_t length) const {
  if (alpha == 0) return 1;
  const auto size = static_cast<double>(std::max<int64_t>(1, length));
  return std::pow(gnmt ? (5 + size) / 6 : size, alpha);
}

Search::Search(SearchOptions options, int32_t end, int64_t sourceLength)
    : options_(std::move(options)), end_(end), sourceLength_(sourceLength) {
  live_.resize(options_.temperature > 0 ? static_cast<size_t>(options_.nBest) : 1);
  if (options_.coveragePenalty > 0) {
    for (auto& hypothesis : live_) hypothesis.coverage.resize(static_cast<size_t>(sourceLength));
  }
  for (size_t i = 0; i < live_.size(); ++i) {
    streams_.push_back(options_.seed ^ (0xD1B54A32D192ED03ULL * (i + 1)));
  }
  examined_.resize(live_.size());
}

void Search::restrict(const Hypothesis& hypothesis, float* logits, int64_t vocabulary) const {
  if (options_.repetitionPenalty != 1) {
    const auto penalty = static_cast<float>(options_.repetitionPenalty);
    auto seen = hypothesis.tokens;
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    for (const auto token : seen) {
      float& logit = logits[token];
      logit = logit > 0 ? logit / penalty : logit * penalty;
    }
  }
  for (const auto token : options_.suppressed) {
    if (token < vocabulary) logits[token] = ruledOut;
  }
  if (step_ < options_.minLength) logits[end_] = ruledOut;
  const auto& tokens = hypothesis.tokens;
  const auto n = options_.noRepeatNgram;
  if (n > 0 && std::ssize(tokens) >= n) {
    // What follows where the last n - 1 tokens have been before.
    const auto recent = tokens.end() - (n - 1);
    for (auto start = tokens.begin(); start + (n - 1) < tokens.end(); ++start) {
      if (std::equal(recent, tokens.end(), start)) logits[*(start + (n - 1))] = ruledOut;
    }
  }
}

void Search::sample(size_t index, float* logits, int64_t vocabulary,
                    std::vector<ScoredToken>& best) {
  const auto temperature = static_cast<float>(options_.temperature);
  for (int64_t i = 0; i < vocabulary; ++i) logits[i] /= temperature;
  const bool isCut = options_.topK > 0 || options_.topP < 1;
  if (isCut) {
    const auto most = options_.topK > 0 ? std::min(options_.topK, vocabulary) : vocabulary;
    bestTokens(logits, vocabulary, most, best);
  } else {
    best.clear();
    for (int64_t i = 0; i < vocabulary; ++i) {
      if (logits[i] > ruledOut) best.push_back({static_cast<int32_t>(i), logits[i]});
    }
  }
  if (best.empty()) return;
  float highest = best.front().score;
  for (const auto& one : best) highest = std::max(highest, one.score);
  std::vector<double> shares;
  double total = 0;
  for (const auto& one : best) {
    shares.push_back(std::exp(static_cast<double>(one.score - highest)));
    total += shares.back();
  }
  if (options_.topP < 1) {
    double covered = 0;
    size_t kept = 0;
    while (kept < shares.size() && covered < options_.topP * total) covered += shares[kept++];
    shares.resize(std::max<size_t>(1, kept));
    total = covered;
  }
  double left = uniformAt(streams_[index], static_cast<uint64_t>(step_)) * total;
  size_t chosen = 0;
  while (chosen + 1 < shares.size() && left >= shares[chosen]) left -= shares[chosen++];
  best.assign(1, best[chosen]);
}

void Search::examine(size_t index, float* logits, int64_t vocabulary, const float* attention) {
  auto& examined = examined_[index];
  examined.attention = attention;
  const bool isForced = isForcedStep();
  // The probabilities of given tokens are the model's own.
  if (!isForced) restrict(live_[index], logits, vocabulary);
  examined.best.clear();
  const auto highest = bestToken(logits, vocabulary);
  examined.isFinite = highest.isFinite;
  // A hypothesis with nothing left to go on ends as it is.
  if (!highest.isFinite || highest.isNone()) return;
  const auto best = highest.best;
  const bool isBeam = options_.beam > 1 && !isForced;
  const bool needsSum = options_.wantsScores || options_.forced || isBeam;
  // A sample's log-probability is the model's, before the temperature.
  const float sum = needsSum ? logSumExp(logits, vocabulary, best.score) : 0;
  if (isForced) {
    const auto token = options_.prefix[static_cast<size_t>(step_)];
    examined.best.assign(1, {token, logits[token] - sum});
  } else if (options_.temperature > 0) {
    const auto temperature = static_cast<float>(options_.temperature);
    sample(index, logits, vocabulary, examined.best);
    for (auto& one : examined.best) one.score = one.score * temperature - sum;
  } else if (isBeam) {
    bestTokens(logits, vocabulary, 2 * options_.beam, examined.best);
    for (auto& one : examined.best) one.score -= sum;
  } else {
    examined.best.assign(1, {best.token, best.score - sum});
  }
}

Hypothesis Search::continued(Hypothesis parent, const Continuation& continuation) const {
  parent.score = continuation.score;
  parent.tokens.push_back(continuation.token.token);
  if (options_.wantsScores || options_.forced) {
    parent.tokenScores.push_back(continuation.token.score);
  }
  const auto* attention = examined_[continuation.parent].attention;
  if (options_.wantsAttention) {
    parent.attention.insert(parent.attention.end(), attention, attention + sourceLength_);
  }
  for (size_t i = 0; i < parent.coverage.size(); ++i) parent.coverage[i] += attention[i];
  return parent;
}

double Search::scoreOf(const Hypothesis& hypothesis, int64_t length) const {
  double score = hypothesis.score / options_.lengthPenalty.of(length);
  if (options_.coveragePenalty > 0) {
    double sum = 0;
    for (const auto covered : hypothesis.coverage) {
      sum += std::log(std::clamp(static_cast<double>(covered), leastCoverage, 1.0));
    }
    score += options_.coveragePenalty * sum;
  }
  return score;
}

void Search::finish(Hypothesis hypothesis, bool ended) {
  FinishedTarget target;
  target.score = scoreOf(hypothesis, std::ssize(hypothesis.tokens));
  target.ended = ended;
  if (ended) hypothesis.tokens.pop_back();
  target.tokens = std::move(hypothesis.tokens);
  target.tokenScores = std::move(hypothesis.tokenScores);
  target.attention = std::move(hypothesis.attention);
  // Of equal scores, the earlier comes first.
  const auto place =
      std::upper_bound(finished_.begin(), finished_.end(), target.score,
                       [](double score, const auto& other) { return score > other.score; });
  finished_.insert(place, std::move(target));
}

void Search::finishAll() {
  for (auto& hypothesis : live_) finish(std::move(hypothesis), false);
  live_.clear();
}

/// What the best unfinished hypothesis could reach if all further tokens were certain.
double Search::highestScoreOfLive() const {
  double highest = -std::numeric_limits<double>::infinity();
  for (const auto& hypothesis : live_) {
    // Sums are negative, so the longest target has the best score if length is rewarded, and the
    // shortest if it is not. The penalty of coverage is at best 0.
    const auto length = options_.lengthPenalty.alpha > 0 ? options_.maxLength : step_ + 1;
    highest = std::max(highest, hypothesis.score / options_.lengthPenalty.of(length));
  }
  return highest;
}

void Search::advance() {
  for (const auto& examined : examined_) faulty_ = faulty_ || !examined.isFinite;
  if (faulty_) return;
  if (options_.beam > 1 && !isForcedStep()) {
    advanceBeam();
  } else {
    advanceEach();
  }
  ++step_;
  if (options_.forced && !isForcedStep()) finishAll();
  if (step_ >= options_.maxLength) finishAll();
  const auto wanted = static_cast<size_t>(options_.nBest);
  if (live_.empty() && finished_.size() > wanted) finished_.resize(wanted);
  examined_.resize(live_.size());
}

/// Each hypothesis goes on by itself.
void Search::advanceEach() {
  std::vector<Hypothesis> next;
  std::vector<uint64_t> streams;
  for (size_t i = 0; i < live_.size(); ++i) {
    if (examined_[i].best.empty()) {
      finish(std::move(live_[i]), false);
      continue;
    }
    const auto& token = examined_[i].best.front();
    const Continuation continuation{i, token, live_[i].score + static_cast<double>(token.score)};
    auto hypothesis = continued(std::move(live_[i]), continuation);
    if (token.token == end_) {
      finish(std::move(hypothesis), true);
    } else {
      next.push_back(std::move(hypothesis));
      streams.push_back(streams_[i]);
    }
  }
  live_ = std::move(next);
  streams_ = std::move(streams);
}

void Search::advanceBeam() {
  const auto beam = static_cast<size_t>(options_.beam);
  std::vector<Continuation> continuations;
  for (size_t i = 0; i < live_.size(); ++i) {
    for (const auto& token : examined_[i].best) {
      continuations.push_back({i, token, live_[i].score + static_cast<double>(token.score)});
    }
  }
  if (continuations.empty()) {
    // Everything is ruled out.
    finishAll();
    return;
  }
  // Among equals the better hypothesis, then the lower id.
  const auto kept = std::min(continuations.size(), 2 * beam);
  std::partial_sort(continuations.begin(),
                    continuations.begin() + static_cast<std::ptrdiff_t>(kept), continuations.end(),
                    [](const Continuation& a, const Continuation& b) {
                      if (a.score != b.score) return a.score > b.score;
                      if (a.parent != b.parent) return a.parent < b.parent;
                      return a.token.token < b.token.token;
                    });
  continuations.resize(kept);

  // Only an end among the best `beam` counts; what takes its place is the next best.
  std::vector<Continuation> chosen;
  const bool isLast = step_ + 1 >= options_.maxLength;
  for (size_t rank = 0; rank < kept && chosen.size() < beam; ++rank) {
    const auto& continuation = continuations[rank];
    if (continuation.token.token != end_) {
      if (!isLast || rank < beam) chosen.push_back(continuation);
    } else if (rank < beam) {
      finish(continued(live_[continuation.parent], continuation), true);
    }
  }
  std::vector<Hypothesis> next;
  std::vector<size_t> children(live_.size(), 0);
  for (const auto& continuation : chosen) ++children[continuation.parent];
  for (const auto& continuation : chosen) {
    auto& parent = live_[continuation.parent];
    // The last child takes over its parent.
    const bool isLastChild = --children[continuation.parent] == 0;
    next.push_back(isLastChild ? continued(std::move(parent), continuation)
                               : continued(parent, continuation));
  }
  live_ = std::move(next);

  const auto wanted = static_cast<size_t>(options_.nBest);
  const auto enough = std::max(static_cast<double>(wanted),
                               std::round(static_cast<double>(beam) * options_.patience));
  const bool isFull = static_cast<double>(finished_.size()) >= enough;
  // With penalties, a later hypothesis may be better than an earlier one.
  const bool isDecided = finished_.size() >= wanted && !live_.empty() &&
                         highestScoreOfLive() <= finished_[wanted - 1].score;
  if (isFull || isDecided) live_.clear();
}

std::vector<int32_t> Search::commonTokens() const {
  if (live_.empty()) return {};
  auto common = live_.front().tokens;
  for (const auto& hypothesis : live_) {
    const auto end = std::mismatch(common.begin(), common.end(), hypothesis.tokens.begin(),
                                   hypothesis.tokens.end())
                         .first;
    common.erase(end, common.end());
  }
  return common;
}

}  // namespace torchformer::core
