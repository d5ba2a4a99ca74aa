// The native thread of one environment: async jobs run on it in order, and the event loop is
// notified when they end. There is one thread per environment, because each calling thread gets its
// own OpenMP team, and two teams would compete for the cores.
#pragma once

#include <napi.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace torchformer::bind {

struct Environment;

class Worker {
 public:
  // `work` runs on the thread with the caller's autograd state and must not use JS. `finish` runs
  // on the event loop, and its result resolves the promise. An exception of either rejects it.
  struct Job {
    std::function<void()> work;
    std::function<Napi::Value()> finish;
  };

  explicit Worker(Environment& environment);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Returns the promise. Throws once the worker is stopped.
  Napi::Value submit(Job job);

  // Waits for the running job, drops the others and ends the thread. Must happen before the static
  // objects of the process are destroyed, including libtorch's, which the job uses.
  void stop();

  // Whether the caller runs on the native thread of some environment.
  static bool isWorkerThread();

  // Called by native work on other threads: runs `call` on the event loop's thread with the
  // caller's autograd state, and waits for it. Throws the exception of `call`, or if the
  // environment ends.
  void runOnLoop(std::function<void()> call);

 private:
  // A task that another thread passes to the event loop. JS that it calls runs in the async context
  // of the call that submitted the job, so tensors created there belong to the scope of that call.
  struct LoopTask;
  struct Pending;
  struct LoopCall;

  void run();
  void settle(Pending& pending);
  // Runs `call` on the event loop in the async context of the call whose job is running.
  void inContext(const std::function<void()>& call);
  static void onLoop(Napi::Env env, Napi::Function, Worker* worker, LoopTask* task);

  Environment& environment_;
  Napi::Env::CleanupHook<void (*)(Worker*), Worker> environmentEnd_;
  Napi::TypedThreadSafeFunction<Worker, LoopTask, onLoop> loop_;
  // For each unsettled job, a JS function that runs another one in the async context of its call.
  // Jobs run and settle in order, so the first one is that of the running job. Used only on the
  // event loop's thread.
  std::deque<Napi::FunctionReference> contexts_;

  std::mutex mutex_;
  // Notified of new jobs, of calls that the event loop has completed, and of the end.
  std::condition_variable wake_;
  std::deque<std::unique_ptr<Pending>> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace torchformer::bind
