#pragma once

#include <c10/util/FunctionRef.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

// Threads for many short pieces of work in a row, as in a decoding step, whose products take some
// microseconds each. OpenMP's threads go to sleep between such pieces, or wait for each other: one
// that has lost its core to another process then delays all. Here a thread that is not there is not
// waited for; who is there does its share.

namespace torchformer::core {

class ThreadTeam {
 public:
  /// `size`: with the caller of `run`; at least 1.
  explicit ThreadTeam(int64_t size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int64_t size() const { return static_cast<int64_t>(threads_.size()) + 1; }

  /// Calls work() on this thread and on those others that are there in time; returns when all such
  /// calls have returned. The first one that returns must have left nothing to do for calls that
  /// have not begun.
  /// @throws what work() throws
  void run(c10::function_ref<void()> work);

 private:
  void serve();
  void sleep(uint64_t seen);

  /// Bit 0: open for others; bits 1 to 15: how many others are at work; the rest counts calls of
  /// run.
  std::atomic<uint64_t> state_{0};
  std::atomic<const c10::function_ref<void()>*> work_{nullptr};
  std::atomic<bool> ends_{false};
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::exception_ptr fault_;  // guarded by mutex_
  std::vector<std::thread> threads_;
};

/// While it exists, `onThreads` and `forRanges` on this thread use a team instead of libtorch's
/// threads, which are set to one.
class TeamScope {
 public:
  explicit TeamScope(ThreadTeam& team);
  ~TeamScope();
  TeamScope(const TeamScope&) = delete;
  TeamScope& operator=(const TeamScope&) = delete;

 private:
  ThreadTeam* previous_;
  int libtorchThreads_;
};

/// How many threads `onThreads` uses.
int64_t threadCount();

/// Calls work() on up to `threads` threads at a time, this one among them. The first call that
/// returns must have left nothing to do for calls that have not begun.
void onThreads(int64_t threads, c10::function_ref<void()> work);

/// Calls work(begin, end) for parts of [0, count) of at least `grain` on all threads, in any order.
void forRanges(int64_t count, int64_t grain, c10::function_ref<void(int64_t, int64_t)> work);

}  // namespace torchformer::core
