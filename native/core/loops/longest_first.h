#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace torchformer::core {

struct CostedItem {
  int64_t index;
  int64_t cost;  // in multiplications
};

/// Work that threads take in portions of about the same cost, the most expensive items first, so
/// that all threads end at about the same time although the items differ and another process may
/// hold up a thread. Each item has `repeats` parts.
class LongestFirst {
 public:
  LongestFirst(std::vector<CostedItem> items, int64_t repeats)
      : items_(std::move(items)), repeats_(repeats) {
    std::stable_sort(items_.begin(), items_.end(),
                     [](const CostedItem& a, const CostedItem& b) { return a.cost > b.cost; });
    int64_t total = 0;
    for (const auto& item : items_) total += item.cost * repeats;
    // Below this, a second thread costs more than it gains.
    constexpr int64_t cheap = 100000;
    threads_ = total < cheap || at::in_parallel_region() ? 1 : at::get_num_threads();
    constexpr int64_t portionsOfThread = 16;
    const auto portion = threads_ == 1 ? total + 1 : total / (threads_ * portionsOfThread) + 1;
    int64_t cost = portion;
    for (int64_t i = 0; i < count(); ++i) {
      if (cost >= portion) {
        starts_.push_back(i);
        cost = 0;
      }
      cost += items_[static_cast<size_t>(i / repeats)].cost;
    }
    starts_.push_back(count());
  }

  int64_t threads() const { return threads_; }

  /// Calls visit(index, part, thread) for all parts of all items.
  template <typename Visit>
  void forEach(const Visit& visit) const {
    std::atomic<size_t> next{0};
    at::parallel_for(0, threads_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t thread = begin; thread < end; ++thread) {
        for (size_t portion = next++; portion + 1 < starts_.size(); portion = next++) {
          for (int64_t i = starts_[portion]; i < starts_[portion + 1]; ++i) {
            visit(items_[static_cast<size_t>(i / repeats_)].index, i % repeats_, thread);
          }
        }
      }
    });
  }

 private:
  int64_t count() const { return static_cast<int64_t>(items_.size()) * repeats_; }

  std::vector<CostedItem> items_;
  int64_t repeats_;
  int64_t threads_ = 1;
  std::vector<int64_t> starts_;
};

}  // namespace torchformer::core
