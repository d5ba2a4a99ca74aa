// What one Node environment (the main thread or a worker) owns on the native side: the TypeScript
// classes, the table of live tensors, the random generator, the thread count and the native
// thread for async ops. It lives in the addon's instance data, never in a C++ static: a process
// can have many environments.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>
#include <napi.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "call_frame.h"
#include "tensor_table.h"
#include "warnings.h"

namespace torchformer::bind {

class CallbackRegistry;
class Worker;

struct Environment {
  explicit Environment(Napi::Env nodeEnvironment);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  // The environment of the running callback.
  static Environment& of(Napi::Env env);

  void applyThreadCount() const;
  // Frees the JS functions of hooks and graphs that are gone.
  void collectCallbacks() const;
  // Hands libtorch's warnings to TypeScript, which shows each text once.
  void showWarnings(const std::vector<std::string>& messages) const;
  // Runs native work on the event loop's thread.
  template <typename Work>
  void runNow(Work work) const {
    applyThreadCount();
    collectCallbacks();
    std::vector<std::string> warnings;
    {
      const WarningCollector collector(warnings);
      work();
    }
    if (!warnings.empty()) showWarnings(warnings);
  }
  Worker& asyncWorker();

  Napi::Env env;
  // Makes a Tensor of the number of its slot.
  Napi::FunctionReference makeTensor;
  // The number of a Tensor's slot, 0 if it is disposed of, -1 for all that is no Tensor.
  Napi::FunctionReference slotOf;
  Napi::FunctionReference errorClass;
  Napi::FunctionReference floatScalarClass;
  Napi::FunctionReference warn;
  // Gives a function that calls another one in the async context that is current now.
  Napi::FunctionReference captureContext;
  TensorTable tensors;
  // Lies in `frameBuffer`.
  CallFrame* frame = nullptr;
  Napi::Reference<Napi::ArrayBuffer> frameBuffer;
  torch::jit::Stack spareStack;
  // By their address.
  std::unordered_map<const void*, ReportedStorage> reportedStorages;
  int64_t reportedBytes = 0;
  at::Generator generator;
  int threadCount;
  std::unique_ptr<Worker> worker;
  std::shared_ptr<CallbackRegistry> callbacks;
  // Whether the event loop's thread waits for a backward pass, which may run on other threads.
  std::atomic<bool> loopWaitsForBackward{false};
  // What a JS function threw that the backward pass had called.
  std::optional<Napi::Error> callbackError;
  // Bound ops live as long as the environment: async jobs hold plain pointers to them, and there
  // are a few thousand at most.
  std::vector<std::shared_ptr<const void>> ownedOps;
};

}  // namespace torchformer::bind
