#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/support/check.h"

namespace torchformer::core {

/// Objects of the process that callers of ops know by a number: the dispatcher passes numbers on.
/// An object that is not removed ends with the thread that has added it: if a worker of Node.js is
/// terminated, nobody else knows its numbers.
template <typename T>
class NativeObjects {
 public:
  static int64_t add(std::shared_ptr<T> object) {
    static thread_local OfThread ofThread;
    auto& all = instance();
    ofThread.numbers.push_back(all.insert(std::move(object)));
    return ofThread.numbers.back();
  }

  /// How many there are.
  static int64_t count() {
    auto& all = instance();
    const std::lock_guard<std::mutex> lock(all.mutex_);
    return static_cast<int64_t>(all.objects_.size());
  }

  /// @throws ERR_DISPOSED for a number that is not, or no longer, of such an object
  static std::shared_ptr<T> get(const char* op, const char* name, int64_t number) {
    auto& all = instance();
    const std::lock_guard<std::mutex> lock(all.mutex_);
    const auto found = all.objects_.find(number);
    TF_CHECK(ERR_DISPOSED, found != all.objects_.end(), op, ": there is no ", name, " ", number);
    return found->second;
  }

  /// It is destroyed once nobody uses it. Other numbers are ignored.
  static void remove(int64_t number) {
    auto& all = instance();
    std::shared_ptr<T> last;  // declared first, so that it is destroyed outside of the lock
    const std::lock_guard<std::mutex> lock(all.mutex_);
    const auto found = all.objects_.find(number);
    if (found == all.objects_.end()) return;
    last = std::move(found->second);
    all.objects_.erase(found);
  }

 private:
  struct OfThread {
    std::vector<int64_t> numbers;
    ~OfThread() {
      for (const auto number : numbers) remove(number);
    }
  };

  int64_t insert(std::shared_ptr<T> object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    objects_.emplace(++last_, std::move(object));
    return last_;
  }

  static NativeObjects& instance() {
    // Never destroyed: threads may still use an object while the process ends.
    static auto* const all = new NativeObjects;
    return *all;
  }

  std::mutex mutex_;
  std::unordered_map<int64_t, std::shared_ptr<T>> objects_;
  int64_t last_ = 0;
};

}  // namespace torchformer::core
