#include "worker.h"

#include <ATen/ThreadLocalState.h>

#include "environment.h"
#include "errors.h"

namespace torchformer::bind {

struct Worker::Pending {
  Job job;
  Napi::Promise::Deferred deferred;
  // Grad mode and its like are thread-local and start anew on a thread: bring the caller's.
  at::ThreadLocalState state;
  std::exception_ptr failure = nullptr;
  std::vector<std::string> warnings = {};
};

Worker::Worker(Environment& environment) : environment_(environment) {
  Napi::Env env = environment.env;
  settled_ = decltype(settled_)::New(env, "torchformer", 0, 1, this);
  // An idle thread must not keep the process alive.
  settled_.Unref(env);
  environmentEnd_ = env.AddCleanupHook(+[](Worker* worker) { worker->stop(); }, this);
  thread_ = std::thread([this] { run(); });
}

Worker::~Worker() { stop(); }

void Worker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    queue_.clear();
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Napi::Value Worker::submit(Job job) {
  Napi::Env env = environment_.env;
  auto pending = std::make_unique<Pending>(
      Pending{std::move(job), Napi::Promise::Deferred::New(env), at::ThreadLocalState()});
  const Napi::Value promise = pending->deferred.Promise();
  // Pending work keeps the process alive.
  if (unsettled_++ == 0) settled_.Ref(env);
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(pending));
  }
  wake_.notify_one();
  return promise;
}

void Worker::run() {
  bool open = true;
  while (open) {
    std::unique_ptr<Pending> pending;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (stopping_) break;
      pending = std::move(queue_.front());
      queue_.pop_front();
    }
    try {
      environment_.applyThreadCount();
      const at::ThreadLocalStateGuard guard(pending->state);
      const WarningCollector collector(pending->warnings);
      pending->job.work();
    } catch (...) {
      pending->failure = std::current_exception();
    }
    // A function that is closing must not be called again.
    open = settled_.BlockingCall(pending.get()) == napi_ok;
    if (open) static_cast<void>(pending.release());
  }
  if (open) settled_.Release();
}

void Worker::onSettled(Napi::Env env, Napi::Function, Worker* worker, Pending* data) {
  std::unique_ptr<Pending> pending(data);
  // Without an environment the promise has nobody left to hear of it.
  if (static_cast<napi_env>(env) == nullptr) return;
  worker->settle(std::move(pending));
}

void Worker::settle(std::unique_ptr<Pending> pending) {
  Napi::Env env = environment_.env;
  if (--unsettled_ == 0) settled_.Unref(env);
  if (!pending->failure) {
    try {
      environment_.showWarnings(pending->warnings);
      pending->deferred.Resolve(pending->job.finish());
      return;
    } catch (...) {
      pending->failure = std::current_exception();
    }
  }
  // An exception that left this callback would leave the promise unsettled for ever.
  napi_value reason = env.Undefined();
  try {
    reason = makeError(env, pending->failure).Value();
  } catch (...) {
    reason = Napi::Error::New(env, "unknown native error").Value();
  }
  pending->deferred.Reject(reason);
}

}  // namespace torchformer::bind
