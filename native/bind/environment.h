// The native data of one Node environment (the main thread or a worker): the TypeScript classes,
// the table of live tensors, the random generator, the thread count and the native thread for async
// ops. It is stored in the addon's instance data, not in a C++ static, because a process can have
// many environments.
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
  // Frees the JS functions of hooks and graphs that no longer exist.
  void collectCallbacks() const;
  // Passes libtorch's warnings to TypeScript, which shows each message once.
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
  // Creates the Tensor for a slot number.
  Napi::FunctionReference makeTensor;
  // The slot number of a Tensor, 0 if it is disposed of, -1 for any other value.
  Napi::FunctionReference slotOf;
  Napi::FunctionReference errorClass;
  Napi::FunctionReference floatScalarClass;
  Napi::FunctionReference warn;
  // Returns a function that calls another one in the current async context.
  Napi::FunctionReference captureContext;
  TensorTable tensors;
  // In the memory of `frameBuffer`.
  CallFrame* frame = nullptr;
  Napi::Reference<Napi::ArrayBuffer> frameBuffer;
  // By their numbers.
  std::vector<c10::IValue> frameStrings;
  torch::jit::Stack spareStack;
  // Keyed by their addresses.
  std::unordered_map<const void*, CountedStorage> countedStorages;
  // The sum of these storages, and what the garbage collector knows of it.
  int64_t storageBytes = 0;
  int64_t reportedBytes = 0;
  at::Generator generator;
  int threadCount;
  std::unique_ptr<Worker> worker;
  std::shared_ptr<CallbackRegistry> callbacks;
  // Whether the event loop's thread waits for a backward pass, which may run on other threads.
  std::atomic<bool> loopWaitsForBackward{false};
  // The error of a JS function that the backward pass called.
  std::optional<Napi::Error> callbackError;
  // Bound ops live as long as the environment: async jobs hold plain pointers to them, and there
  // are a few thousand at most.
  std::vector<std::shared_ptr<const void>> ownedOps;
};

}  // namespace torchformer::bind
