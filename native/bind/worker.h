// The native thread of one environment: async jobs run on it in order, their ends are told to the
// event loop. One thread an environment, because each calling thread gets an OpenMP team of its
// own and two teams at once would fight for the cores.
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
  // `work` runs on the thread with the caller's autograd state and must not touch JS; the JS
  // value that `finish` makes on the event loop settles the promise. An exception of either
  // rejects it.
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

  // Waits for the job that runs, drops the others and ends the thread. Must happen before the
  // process's static objects go, among them libtorch's, which the job uses.
  void stop();

  // Whether the caller runs on the native thread of some environment.
  static bool isWorkerThread();

  // Called by native work on another thread than the event loop's: runs `call` there, with the
  // caller's autograd state, and waits. Throws what `call` throws, or when the environment ends.
  void runOnLoop(std::function<void()> call);

 private:
  // Something that another thread leaves to the event loop. JS that it calls runs in the async
  // context of the call whose job it belongs to: that call's scope gets the tensors made there.
  struct LoopTask;
  struct Pending;
  struct LoopCall;

  void run();
  void settle(Pending& pending);
  // Runs `call` on the event loop in the async context of the call whose job is at work.
  void inContext(const std::function<void()>& call);
  static void onLoop(Napi::Env env, Napi::Function, Worker* worker, LoopTask* task);

  Environment& environment_;
  Napi::Env::CleanupHook<void (*)(Worker*), Worker> environmentEnd_;
  Napi::TypedThreadSafeFunction<Worker, LoopTask, onLoop> loop_;
  // For each call whose job is not settled a JS function that runs another one in the async context
  // of that call. Jobs run and settle in order, so the first one is that of the job at work. Used
  // on the event loop's thread alone.
  std::deque<Napi::FunctionReference> contexts_;

  std::mutex mutex_;
  // Told of new jobs, of calls that the event loop has made, and of the end.
  std::condition_variable wake_;
  std::deque<std::unique_ptr<Pending>> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace torchformer::bind
