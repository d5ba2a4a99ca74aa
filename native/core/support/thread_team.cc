#include "core/support/thread_team.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace torchformer::core {

namespace {

constexpr uint64_t openBit = 1;
constexpr uint64_t oneAtWork = 2;
constexpr uint64_t atWorkMask = 0xfffe;
constexpr uint64_t oneCall = 0x10000;

/// A thread without work looks for it for so long before it sleeps: longer than the parts of a step
/// that one thread does alone, shorter than what a sleeping core is worth.
constexpr auto patience = std::chrono::microseconds(50);

/// Looks between two looks at the clock.
constexpr int looks = 64;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

thread_local ThreadTeam* teamOfThread = nullptr;

}  // namespace

ThreadTeam::ThreadTeam(int64_t size) {
  for (int64_t i = 1; i < size; ++i) threads_.emplace_back([this] { serve(); });
}

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ThreadTeam::run(c10::function_ref<void()> work) {
  if (threads_.empty()) return work();
  work_.store(&work, std::memory_order_relaxed);
  const auto calls = state_.load(std::memory_order_relaxed) / oneCall * oneCall;
  state_.store(calls + oneCall + openBit, std::memory_order_seq_cst);
  // Whoever goes to sleep now looks at the state first: see sleep().
  if (sleepers_.load(std::memory_order_seq_cst) > 0) {
    const std::lock_guard<std::mutex> lock(mutex_);
    wake_.notify_all();
  }
  std::exception_ptr fault;
  try {
    work();
  } catch (...) {
    fault = std::current_exception();
  }
  state_.fetch_and(~openBit, std::memory_order_acq_rel);
  for (int turn = 0; (state_.load(std::memory_order_acquire) & atWorkMask) != 0; ++turn) {
    pause();
    if (turn % looks == looks - 1) std::this_thread::yield();
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    // Taken in any case, so that the next call does not throw it.
    const auto faultOfOthers = std::exchange(fault_, nullptr);
    if (fault == nullptr) fault = faultOfOthers;
  }
  if (fault != nullptr) std::rethrow_exception(fault);
}

void ThreadTeam::serve() {
  at::set_num_threads(1);
  uint64_t done = 0;  // the call that this thread has worked for last
  auto start = std::chrono::steady_clock::now();
  for (int turn = 0; !ends_.load(std::memory_order_relaxed); ++turn) {
    auto state = state_.load(std::memory_order_acquire);
    const auto call = state / oneCall;
    if ((state & openBit) != 0 && call != done) {
      if (!state_.compare_exchange_weak(state, state + oneAtWork, std::memory_order_acq_rel)) {
        continue;
      }
      try {
        (*work_.load(std::memory_order_relaxed))();
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex_);
        fault_ = std::current_exception();
      }
      done = call;
      state_.fetch_sub(oneAtWork, std::memory_order_acq_rel);
      start = std::chrono::steady_clock::now();
      continue;
    }
    pause();
    if (turn % looks != 0 || std::chrono::steady_clock::now() - start < patience) continue;
    sleep(call);
    start = std::chrono::steady_clock::now();
  }
}

/// Sleeps until there is another call than `seen`.
void ThreadTeam::sleep(uint64_t seen) {
  std::unique_lock<std::mutex> lock(mutex_);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  wake_.wait(lock, [&] {
    return ends_.load() || state_.load(std::memory_order_seq_cst) / oneCall != seen;
  });
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

TeamScope::TeamScope(ThreadTeam& team)
    : previous_(teamOfThread), libtorchThreads_(at::get_num_threads()) {
  teamOfThread = &team;
  if (libtorchThreads_ != 1) at::set_num_threads(1);
}

TeamScope::~TeamScope() {
  teamOfThread = previous_;
  if (libtorchThreads_ != 1) at::set_num_threads(libtorchThreads_);
}

int64_t threadCount() {
  return teamOfThread != nullptr ? teamOfThread->size() : at::get_num_threads();
}

void onThreads(int64_t threads, c10::function_ref<void()> work) {
  if (threads <= 1) {
    work();
  } else if (teamOfThread != nullptr) {
    teamOfThread->run(work);
  } else {
    at::parallel_for(0, threads, 1, [&](int64_t, int64_t) { work(); });
  }
}

void forRanges(int64_t count, int64_t grain, c10::function_ref<void(int64_t, int64_t)> work) {
  if (teamOfThread == nullptr) {
    at::parallel_for(0, count, grain, work);
    return;
  }
  if (count <= grain) {
    if (count > 0) work(0, count);
    return;
  }
  // Several parts for each thread, so that all are done at about the same time.
  const auto part = std::max(grain, count / (4 * threadCount()));
  std::atomic<int64_t> next{0};
  onThreads(threadCount(), [&] {
    for (int64_t begin; (begin = next.fetch_add(part, std::memory_order_relaxed)) < count;) {
      work(begin, std::min(count, begin + part));
    }
  });
}

}  // namespace torchformer::core
