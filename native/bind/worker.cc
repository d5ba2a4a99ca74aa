#include "worker.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/ThreadLocalState.h>
#include <torch/csrc/autograd/engine.h>

#include <unordered_set>

#include "environment.h"
#include "errors.h"

namespace torchformer::bind {
namespace {

thread_local bool onWorkerThread = false;

// Stops running workers if the process exits without the JS listener: Node.js runs no clean-up
// hooks of the main thread on process.exit and after uncaught errors. Created after libtorch was
// loaded, so it is destroyed before libtorch's static objects.
class RunningWorkers {
 public:
  static RunningWorkers& instance() {
    // The static objects that a backward pass creates on first use must be created before this one.
    torch::autograd::Engine::get_default_engine();
    at::accelerator::getAccelerator(false);
    static RunningWorkers workers;
    return workers;
  }

  void add(Worker* worker) {
    const std::lock_guard lock(mutex_);
    workers_.insert(worker);
  }

  void remove(Worker* worker) {
    const std::lock_guard lock(mutex_);
    workers_.erase(worker);
  }

  ~RunningWorkers() {
    const std::lock_guard lock(mutex_);
    for (Worker* worker : workers_) worker->stop();
  }

 private:
  std::mutex mutex_;
  std::unordered_set<Worker*> workers_;
};

}  // namespace

bool Worker::isWorkerThread() { return onWorkerThread; }

struct Worker::LoopTask {
  virtual ~LoopTask() = default;
  virtual void run(Worker& worker) = 0;
};

// A job with its promise.
struct Worker::Pending : LoopTask {
  Pending(Job given, Napi::Env env)
      : job(std::move(given)), deferred(Napi::Promise::Deferred::New(env)) {}
  void run(Worker& worker) override {
    worker.inContext([&] { worker.settle(*this); });
    worker.contexts_.pop_front();
    if (worker.contexts_.empty()) worker.loop_.Unref(worker.environment_.env);
  }

  Job job;
  Napi::Promise::Deferred deferred;
  // The caller's grad mode and similar state, which is thread-local.
  at::ThreadLocalState state;
  std::exception_ptr failure = nullptr;
  std::vector<std::string> warnings;
};

// A call that a thread waits for. The state is shared, because either side may end first.
struct Worker::LoopCall : LoopTask {
  struct State {
    std::function<void()> call;
    at::ThreadLocalState caller;
    std::exception_ptr failure = nullptr;
    bool done = false;
    bool abandoned = false;
  };

  explicit LoopCall(std::shared_ptr<State> given) : state(std::move(given)) {}
  void run(Worker& worker) override {
    {
      const std::lock_guard lock(worker.mutex_);
      if (state->abandoned) return;
    }
    worker.inContext([&] {
      try {
        const at::ThreadLocalStateGuard guard(state->caller);
        state->call();
      } catch (...) {
        state->failure = std::current_exception();
      }
    });
    {
      const std::lock_guard lock(worker.mutex_);
      state->done = true;
    }
    worker.wake_.notify_all();
  }

  std::shared_ptr<State> state;
};

Worker::Worker(Environment& environment) : environment_(environment) {
  Napi::Env env = environment.env;
  loop_ = decltype(loop_)::New(env, "torchformer", 0, 1, this);
  // An idle thread must not keep the process alive.
  loop_.Unref(env);
  environmentEnd_ = env.AddCleanupHook(
      +[](Worker* worker) {
        worker->stop();
        worker->contexts_.clear();
      },
      this);
  RunningWorkers::instance().add(this);
  thread_ = std::thread([this] { run(); });
}

Worker::~Worker() {
  RunningWorkers::instance().remove(this);
  stop();
}

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
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) throw BridgeError("ERR_NATIVE", "the environment is shutting down");
  }
  auto pending = std::make_unique<Pending>(std::move(job), env);
  const Napi::Value promise = pending->deferred.Promise();
  contexts_.push_back(Napi::Persistent(environment_.captureContext.Call({}).As<Napi::Function>()));
  // Pending work keeps the process alive.
  if (contexts_.size() == 1) loop_.Ref(env);
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(pending));
  }
  wake_.notify_all();
  return promise;
}

void Worker::runOnLoop(std::function<void()> call) {
  auto state = std::make_shared<LoopCall::State>();
  state->call = std::move(call);
  auto task = std::make_unique<LoopCall>(state);
  if (loop_.BlockingCall(task.get()) != napi_ok) {
    throw BridgeError("ERR_NATIVE", "the environment is shutting down");
  }
  static_cast<void>(task.release());
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [&] { return stopping_ || state->done; });
  if (!state->done) {
    state->abandoned = true;
    throw BridgeError("ERR_NATIVE", "the environment is shutting down");
  }
  lock.unlock();
  if (state->failure) std::rethrow_exception(state->failure);
}

void Worker::run() {
  onWorkerThread = true;
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
    // A closing function must not be called again.
    open = loop_.BlockingCall(pending.get()) == napi_ok;
    if (open) static_cast<void>(pending.release());
  }
  if (open) loop_.Release();
}

void Worker::onLoop(Napi::Env env, Napi::Function, Worker* worker, LoopTask* task) {
  const std::unique_ptr<LoopTask> owned(task);
  // There is no environment if it has ended.
  if (static_cast<napi_env>(env) != nullptr) owned->run(*worker);
}

// Napi::AsyncContext is not used, because AsyncLocalStorage has no value in it since Node.js 24.
void Worker::inContext(const std::function<void()>& call) {
  bool hasRun = false;
  const auto run = [&](const Napi::CallbackInfo&) {
    hasRun = true;
    call();
  };
  try {
    contexts_.front().Call({Napi::Function::New(environment_.env, run)});
  } catch (const Napi::Error&) {
    // A terminating thread runs no JS.
  }
  if (!hasRun) call();
}

void Worker::settle(Pending& pending) {
  Napi::Env env = environment_.env;
  if (!pending.failure) {
    try {
      environment_.showWarnings(pending.warnings);
      pending.deferred.Resolve(pending.job.finish());
      return;
    } catch (...) {
      pending.failure = std::current_exception();
    }
  }
  // If an exception left this callback, the promise would never settle.
  napi_value reason = env.Undefined();
  try {
    reason = makeError(env, pending.failure).Value();
  } catch (...) {
    reason = Napi::Error::New(env, "unknown native error").Value();
  }
  pending.deferred.Reject(reason);
}

}  // namespace torchformer::bind
