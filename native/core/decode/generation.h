#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "core/decode/model_passes.h"
#include "core/decode/search.h"
#include "core/support/thread_team.h"

// Decodes many sources at a time. A request joins the others as soon as there is room, and leaves
// when its search is done, so that the rows of a step are as many as they can be. Requests come
// from any thread; steps are made by whoever calls `run`.

namespace torchformer::core {

struct GenerationRequest {
  std::vector<int64_t> source;
  SearchOptions search;
  bool streams = false;  // its tokens are reported as they become certain
};

/// What has happened to a request.
struct GenerationEvent {
  enum class Kind : int64_t { tokens = 0, done = 1, notFinite = 2 };
  int64_t request;
  Kind kind;
  std::vector<int32_t> tokens;  // of Kind::tokens: all that are certain by now
  int64_t position = 0;         // of Kind::notFinite: of the token, from 1
  std::vector<FinishedTarget> targets;
};

class Generation {
 public:
  /// @param models with the same target vocabulary; the probabilities of several are averaged
  /// @param never tokens that are never generated
  /// @param mostRows hypotheses in a step
  Generation(std::vector<std::shared_ptr<const PreparedModel>> models, int64_t begin, int64_t end,
             std::vector<int32_t> never, int64_t mostRows);

  /// Takes a request and returns its number. Safe to call while `run` runs, as is `cancel`.
  int64_t add(GenerationRequest request);

  /// Forgets a request, for which there are no more events. Unknown numbers are ignored.
  void cancel(int64_t request);

  /// Makes steps until `seconds` have passed, something is done for at least `eager` seconds, or
  /// nothing is left to do. Only one call at a time.
  /// @throws ERR_ARGUMENT if another call runs
  std::vector<GenerationEvent> run(double seconds, double eager);

  /// Requests that are not done.
  int64_t pending();

  /// The first model, which also gives the attention weights.
  const PreparedModel& model() const { return passes_.front().model(); }
  /// Of all models, the smallest.
  int64_t sourceVocabulary() const;
  int64_t longestSource() const;
  int64_t longestTarget() const;

 private:
  struct Active {
    int64_t number;
    GenerationRequest request;
    std::vector<EncodedSource> sources;  // of each model
    Search search;
    std::vector<int32_t> cells;  // all that it has taken
    size_t reported = 0;         // tokens
  };
  struct Waiting {
    int64_t number;
    GenerationRequest request;
  };

  void takeIn();
  void dropCanceled();
  void step(std::vector<GenerationEvent>& events);
  int64_t smallest(c10::function_ref<int64_t(const PreparedModel&)> of) const;
  float* logitsOf(const std::vector<StepRow>& rows);
  void release(Active& active);

  /// All take and give cells in the same order, so a cell has the same number in each.
  std::vector<ModelPasses> passes_;
  std::vector<float> mean_;  // logits of an ensemble
  std::unique_ptr<ThreadTeam> team_;
  int64_t begin_, end_;
  std::vector<int32_t> never_;
  int64_t mostRows_;
  std::vector<std::unique_ptr<Active>> active_;
  std::vector<float> attention_;  // of a step

  std::mutex running_;
  std::mutex mutex_;  // of what follows
  std::deque<Waiting> waiting_;
  std::vector<int64_t> canceled_;
  int64_t next_ = 0;
  int64_t pending_ = 0;
};

}  // namespace torchformer::core
