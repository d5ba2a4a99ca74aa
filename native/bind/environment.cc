#include "environment.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <c10/core/GeneratorImpl.h>

#include "errors.h"
#include "js_callback.h"
#include "worker.h"

namespace torchformer::bind {

Environment::Environment(Napi::Env nodeEnvironment)
    : env(nodeEnvironment),
      // As in PyTorch, the seed is random unless manualSeed is called.
      generator(at::detail::createCPUGenerator(c10::detail::getNonDeterministicRandom())),
      threadCount(at::get_num_threads()),
      callbacks(std::make_shared<CallbackRegistry>(*this)) {}

Environment::~Environment() {
  // Before the members that its last callbacks use are destroyed.
  worker.reset();
  callbacks->close();
}

Environment& Environment::of(Napi::Env env) {
  auto* environment = env.GetInstanceData<Environment>();
  if (environment == nullptr) {
    throw BridgeError("ERR_NATIVE", "the environment is shutting down");
  }
  return *environment;
}

void Environment::applyThreadCount() const {
  // OpenMP has a count per calling thread, so each thread remembers the last value that it set.
  thread_local int applied = 0;
  if (applied != threadCount) {
    at::set_num_threads(threadCount);
    applied = threadCount;
  }
}

void Environment::collectCallbacks() const { callbacks->collect(); }

void Environment::showWarnings(const std::vector<std::string>& messages) const {
  for (const std::string& message : messages) warn.Call({Napi::String::New(env, message)});
}

Worker& Environment::asyncWorker() {
  if (!worker) worker = std::make_unique<Worker>(*this);
  return *worker;
}

}  // namespace torchformer::bind
