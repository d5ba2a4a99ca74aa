#include "core/decode/generation.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/support/check.h"

namespace torchformer::core {

namespace {

/// Source tokens that are encoded at a time.
constexpr int64_t mostEncodedTokens = 4096;

/// A share of the rows that is worth an encoder pass while others wait for it: a pass over few
/// sources costs almost as much as one over some more.
constexpr int64_t shareForEncoding = 8;

/// Number of logits below which a second thread costs more than it gains.
constexpr int64_t logitsForThreads = 8192;

/// The weights of the layer and head that were asked for, [length], of all [layers, heads, length].
void chooseAttention(const float* all, const ModelForm& form, const SearchOptions& options,
                     int64_t length, float* chosen) {
  const auto layer = options.attentionLayer < 0 ? form.layers - 1 : options.attentionLayer;
  const float* const heads = all + layer * form.heads * length;
  if (options.attentionHead >= 0) {
    std::copy_n(heads + options.attentionHead * length, length, chosen);
    return;
  }
  for (int64_t i = 0; i < length; ++i) {
    float sum = 0;
    for (int64_t h = 0; h < form.heads; ++h) sum += heads[h * length + i];
    chosen[i] = sum / static_cast<float>(form.heads);
  }
}

}  // namespace

Generation::Generation(std::vector<std::shared_ptr<const PreparedModel>> models, int64_t begin,
                       int64_t end, std::vector<int32_t> never, int64_t mostRows)
    : begin_(begin), end_(end), never_(std::move(never)), mostRows_(mostRows) {
  for (auto& model : models) passes_.emplace_back(std::move(model));
}

int64_t Generation::smallest(c10::function_ref<int64_t(const PreparedModel&)> of) const {
  int64_t found = of(model());
  for (const auto& passes : passes_) found = std::min(found, of(passes.model()));
  return found;
}

int64_t Generation::sourceVocabulary() const {
  return smallest([](const PreparedModel& model) { return model.source.table.size(0); });
}

int64_t Generation::longestSource() const {
  return smallest([](const PreparedModel& model) { return model.longestSource(); });
}

int64_t Generation::longestTarget() const {
  return smallest([](const PreparedModel& model) { return model.longestTarget(); });
}

int64_t Generation::add(GenerationRequest request) {
  auto& suppressed = request.search.suppressed;
  suppressed.insert(suppressed.end(), never_.begin(), never_.end());
  const std::lock_guard<std::mutex> lock(mutex_);
  waiting_.push_back({next_, std::move(request)});
  ++pending_;
  return next_++;
}

void Generation::cancel(int64_t request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const Waiting& one) { return one.number == request; });
  if (found == waiting_.end()) {
    canceled_.push_back(request);
    return;
  }
  waiting_.erase(found);
  --pending_;
}

int64_t Generation::pending() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return pending_;
}

void Generation::release(Active& active) {
  for (const auto cell : active.cells) {
    for (auto& passes : passes_) passes.cells.give(cell);
  }
  active.cells.clear();
  const std::lock_guard<std::mutex> lock(mutex_);
  --pending_;
}

void Generation::dropCanceled() {
  std::vector<int64_t> canceled;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    canceled.swap(canceled_);
  }
  if (canceled.empty()) return;
  std::erase_if(active_, [&](const auto& active) {
    const bool isCanceled =
        std::find(canceled.begin(), canceled.end(), active->number) != canceled.end();
    if (isCanceled) release(*active);
    return isCanceled;
  });
}

void Generation::takeIn() {
  int64_t rows = 0;
  for (const auto& active : active_) rows += active->search.options().mostRows();
  std::vector<Waiting> taken;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (waiting_.empty()) return;
    int64_t wanted = 0;
    for (const auto& one : waiting_) {
      wanted += one.request.search.mostRows();
      if (wanted > mostRows_) break;
    }
    const auto free = mostRows_ - rows;
    const bool isWorthIt =
        wanted <= free || free >= (mostRows_ + shareForEncoding - 1) / shareForEncoding;
    if (!active_.empty() && !isWorthIt) return;
    int64_t tokens = 0;
    while (!waiting_.empty()) {
      const auto& next = waiting_.front().request;
      const auto needed = next.search.mostRows();
      const auto length = std::ssize(next.source);
      // The first one is taken in any case: nobody else is in its way.
      const bool isFirst = active_.empty() && taken.empty();
      if (!isFirst && (rows + needed > mostRows_ || tokens + length > mostEncodedTokens)) break;
      rows += needed;
      tokens += length;
      taken.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
  }
  if (taken.empty()) return;
  std::vector<const std::vector<int64_t>*> sources;
  for (const auto& one : taken) sources.push_back(&one.request.source);
  std::vector<std::vector<EncodedSource>> encoded;
  for (auto& passes : passes_) encoded.push_back(passes.encode(sources));
  for (size_t i = 0; i < taken.size(); ++i) {
    auto& request = taken[i].request;
    std::vector<EncodedSource> own;
    for (auto& ofModel : encoded) own.push_back(std::move(ofModel[i]));
    Search search(std::move(request.search), static_cast<int32_t>(end_), own.front().length);
    active_.push_back(std::make_unique<Active>(
        Active{taken[i].number, std::move(request), std::move(own), std::move(search), {}}));
  }
}

/// Logits of the next token of each row; of several models, the logarithms of the mean of their
/// probabilities. The sources of the rows are those of the first model.
float* Generation::logitsOf(const std::vector<StepRow>& rows) {
  auto* const logits = passes_.front().step(rows);
  if (passes_.size() == 1) return logits;
  const auto vocabulary = model().vocabulary;
  const auto count = std::ssize(rows);
  mean_.assign(static_cast<size_t>(count * vocabulary), 0.0F);
  auto ofModel = rows;
  for (size_t m = 0; m < passes_.size(); ++m) {
    if (m > 0) {
      for (auto& row : ofModel) {
        // The encoded sources of a request are neighbors.
        ++row.source;
        row.attention = nullptr;
      }
    }
    const auto* const found = m == 0 ? logits : passes_[m].step(ofModel);
    forRanges(count, 1, [&](int64_t begin, int64_t end) {
      for (auto i = begin; i < end; ++i) {
        addProbabilities(found + i * vocabulary, vocabulary, mean_.data() + i * vocabulary);
      }
    });
  }
  forRanges(count, 1, [&](int64_t begin, int64_t end) {
    for (auto i = begin; i < end; ++i) {
      logarithms(mean_.data() + i * vocabulary, vocabulary, static_cast<float>(passes_.size()));
    }
  });
  return mean_.data();
}

void Generation::step(std::vector<GenerationEvent>& events) {
  struct Place {
    Active* active;
    size_t hypothesis;
    float* attention;  // what was asked for; null: nothing
  };
  const auto& form = model().form;
  std::vector<StepRow> rows;
  std::vector<Place> places;
  int64_t attentionSize = 0;
  for (const auto& active : active_) {
    if (!active->search.needsAttention()) continue;
    const auto ofRow = (form.layers * form.heads + 1) * active->sources.front().length;
    attentionSize += ofRow * std::ssize(active->search.live());
  }
  attention_.resize(static_cast<size_t>(attentionSize));
  auto* attention = attention_.data();
  for (const auto& active : active_) {
    auto& live = active->search.live();
    for (size_t i = 0; i < live.size(); ++i) {
      auto& hypothesis = live[i];
      int32_t cell = 0;
      for (auto& passes : passes_) cell = passes.cells.take();
      active->cells.push_back(cell);
      hypothesis.cells.push_back(cell);
      const auto position = std::ssize(hypothesis.tokens);
      const auto token = position == 0 ? begin_ : hypothesis.tokens.back();
      float* all = nullptr;
      float* chosen = nullptr;
      if (active->search.needsAttention()) {
        all = attention;
        chosen = all + form.layers * form.heads * active->sources.front().length;
        attention = chosen + active->sources.front().length;
      }
      rows.push_back({token, position, hypothesis.cells.data(), active->sources.data(), all});
      places.push_back({active.get(), i, chosen});
    }
  }
  auto* const logits = logitsOf(rows);
  const auto vocabulary = model().vocabulary;
  const auto count = std::ssize(rows);
  forRanges(
      count, std::max<int64_t>(1, logitsForThreads / vocabulary), [&](int64_t begin, int64_t end) {
        for (auto i = begin; i < end; ++i) {
          const auto& place = places[static_cast<size_t>(i)];
          auto& search = place.active->search;
          if (place.attention != nullptr) {
            chooseAttention(rows[static_cast<size_t>(i)].attention, form, search.options(),
                            place.active->sources.front().length, place.attention);
          }
          search.examine(place.hypothesis, logits + i * vocabulary, vocabulary, place.attention);
        }
      });
  for (const auto& active : active_) {
    auto& search = active->search;
    const auto position = std::ssize(search.live().front().tokens) + 1;
    search.advance();
    if (search.isFaulty()) {
      events.push_back({active->number, GenerationEvent::Kind::notFinite, {}, position, {}});
    } else if (search.isDone()) {
      events.push_back(
          {active->number, GenerationEvent::Kind::done, {}, 0, std::move(search.results())});
    } else if (active->request.streams) {
      auto common = search.commonTokens();
      if (common.size() > active->reported) {
        active->reported = common.size();
        events.push_back({active->number, GenerationEvent::Kind::tokens, std::move(common), 0, {}});
      }
    }
  }
  std::erase_if(active_, [&](const auto& active) {
    const bool isOver = active->search.isDone() || active->search.isFaulty();
    if (isOver) release(*active);
    return isOver;
  });
}

std::vector<GenerationEvent> Generation::run(double seconds, double eager) {
  const std::unique_lock<std::mutex> lock(running_, std::try_to_lock);
  TF_CHECK(ERR_ARGUMENT, lock.owns_lock(), "run: another call runs; wait for it");
  const auto threads = at::get_num_threads();
  if (team_ == nullptr || team_->size() != threads) team_ = std::make_unique<ThreadTeam>(threads);
  const TeamScope scope(*team_);
  std::vector<GenerationEvent> events;
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    dropCanceled();
    takeIn();
    if (active_.empty()) break;
    step(events);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    if (passed.count() >= (events.empty() ? seconds : eager)) break;
  }
  return events;
}

}  // namespace torchformer::core
