// The addon's functions for the environment: classes, random state, threads, versions.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Version.h>
#include <torch/headeronly/version.h>

#include "core/product/int8_product.h"
#include "core/product/ways.h"
#include "environment.h"
#include "environment_functions.h"
#include "errors.h"
#include "js_values.h"
#include "tensor_handle.h"
#include "worker.h"

namespace torchformer::bind {
namespace {

Napi::FunctionReference referenceTo(const Napi::Object& classes, const char* name) {
  const Napi::Value value = classes.Get(name);
  if (!value.IsFunction()) {
    throw BridgeError("ERR_ARGUMENT",
                      std::string("initialize: ") + name + " must be a function or class");
  }
  return Napi::Persistent(value.As<Napi::Function>());
}

Napi::Value initialize(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  if (!environment.makeTensor.IsEmpty()) {
    throw BridgeError("ERR_NATIVE_LOAD",
                      "two copies of the package's JavaScript use one native addon in this thread");
  }
  const auto classes = info[0].As<Napi::Object>();
  environment.errorClass = referenceTo(classes, "TorchError");
  environment.floatScalarClass = referenceTo(classes, "FloatScalar");
  environment.warn = referenceTo(classes, "warn");
  environment.captureContext = referenceTo(classes, "captureContext");
  environment.slotOf = referenceTo(classes, "slotOf");
  environment.makeTensor = referenceTo(classes, "makeTensor");
  return makeFrame(environment);
}

void seed(at::Generator& generator, uint64_t value) {
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(value);
}

Napi::Value manualSeed(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  const auto value = static_cast<uint64_t>(integerOf(info[0], "seed"));
  seed(environment.generator, value);
  // Raw ops without a generator argument draw from the process's generator.
  environment.runNow([value] { at::manual_seed(value); });
  return info.Env().Undefined();
}

Napi::Value rngState(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  const std::lock_guard lock(environment.generator.mutex());
  return wrapTensor(environment, environment.generator.get_state());
}

Napi::Value setRngState(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  const at::Tensor& state = tensorOf(environment, info[0], "state");
  const std::lock_guard lock(environment.generator.mutex());
  environment.generator.set_state(state);
  return info.Env().Undefined();
}

Napi::Value setNumThreads(const Napi::CallbackInfo& info) {
  const int64_t count = integerOf(info[0], "count");
  constexpr int64_t kMost = 1024;
  if (count < 1 || count > kMost) {
    throw BridgeError("ERR_ARGUMENT",
                      "the thread count must be from 1 to 1024, got " + std::to_string(count));
  }
  Environment& environment = Environment::of(info.Env());
  environment.threadCount = static_cast<int>(count);
  environment.applyThreadCount();
  return info.Env().Undefined();
}

Napi::Value numThreads(const Napi::CallbackInfo& info) {
  return makeInteger(info.Env(), Environment::of(info.Env()).threadCount);
}

Napi::Value stopWorker(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  if (environment.worker) environment.worker->stop();
  return info.Env().Undefined();
}

Napi::Value versions(const Napi::CallbackInfo& info) {
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("torch", TORCH_VERSION);
  result.Set("abi", std::to_string(TORCH_ABI_VERSION));
  const core::ProductWays& products = core::productWays();
  result.Set("float32Products", products.float32);
  result.Set("bfloat16Products", products.bfloat16);
  const core::Int8Kernel* int8 = core::int8Kernel();
  result.Set("int8Products", int8 == nullptr ? "none: bfloat16 weights instead" : int8->name);
  result.Set("cpuCapability", at::get_cpu_capability());
  return result;
}

}  // namespace

void exportEnvironmentFunctions(Napi::Object exports) {
  exportFunction<initialize>(exports, "initialize");
  exportFunction<manualSeed>(exports, "manualSeed");
  exportFunction<rngState>(exports, "rngState");
  exportFunction<setRngState>(exports, "setRngState");
  exportFunction<setNumThreads>(exports, "setNumThreads");
  exportFunction<numThreads>(exports, "numThreads");
  exportFunction<stopWorker>(exports, "stopWorker");
  exportFunction<versions>(exports, "versions");
}

}  // namespace torchformer::bind
