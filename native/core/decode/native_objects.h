#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/support/check.h"

namespace torchformer::core {

/// Objects of the process that callers of ops know by a number: the dispatcher passes numbers on.
template <typename T>
class NativeObjects {
 public:
  static int64_t add(std::shared_ptr<T> object) {
    auto& all = instance();
    const std::lock_guard<std::mutex> lock(all.mutex_);
    all.objects_.emplace(++all.last_, std::move(object));
    return all.last_;
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
