// Backward passes and the grad mode, which the dispatcher does not cover.
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "autograd.h"
#include "environment.h"
#include "errors.h"
#include "js_values.h"
#include "tensor_handle.h"
#include "worker.h"

namespace torchformer::bind {
namespace {

using torch::autograd::variable_list;

variable_list readGradients(Environment& environment, const Napi::Object& options,
                            const variable_list& tensors) {
  variable_list gradients =
      tensorsOf(environment, options.Get("gradients"), "gradients", "gradient");
  if (!gradients.empty() && gradients.size() != tensors.size()) {
    throw BridgeError("ERR_ARGUMENT",
                      "gradients must be one per tensor: " + std::to_string(tensors.size()) +
                          " expected, got " + std::to_string(gradients.size()));
  }
  for (size_t i = 0; i < gradients.size(); i++) {
    if (gradients[i].defined() && !gradients[i].sizes().equals(tensors[i].sizes())) {
      throw BridgeError("ERR_SHAPE", "a gradient must have the shape of its tensor");
    }
  }
  return gradients;
}

// While this exists, the event loop's thread is in a backward pass.
class LoopWait {
 public:
  explicit LoopWait(Environment& environment) : flag_(environment.loopWaitsForBackward) {
    before_ = flag_.exchange(true);
  }
  ~LoopWait() { flag_ = before_; }
  LoopWait(const LoopWait&) = delete;
  LoopWait& operator=(const LoopWait&) = delete;

 private:
  std::atomic<bool>& flag_;
  bool before_;
};

struct BackwardCall {
  variable_list tensors;
  variable_list gradients;
  bool retainGraph = false;
  bool createGraph = false;
  variable_list inputs;

  explicit BackwardCall(const Napi::CallbackInfo& info) {
    const auto options = info[1].As<Napi::Object>();
    Environment& environment = Environment::of(info.Env());
    tensors = tensorsOf(environment, info[0], "tensors", "tensor");
    for (const at::Tensor& tensor : tensors) {
      if (!tensor.defined())
        throw BridgeError("ERR_ARGUMENT", "backward: tensors must not be null");
      if (!tensor.requires_grad()) {
        throw BridgeError("ERR_ARGUMENT",
                          "backward: the tensor does not require gradients and has no graph; was "
                          "it made under noGrad() or from inputs without requiresGrad?");
      }
    }
    gradients = readGradients(environment, options, tensors);
    retainGraph = boolOf(options.Get("retainGraph"), "retainGraph");
    createGraph = boolOf(options.Get("createGraph"), "createGraph");
    inputs = tensorsOf(environment, options.Get("inputs"), "inputs", "input");
  }

  void run() const {
    torch::autograd::backward(tensors, gradients, retainGraph, createGraph, inputs);
  }
};

Napi::Value backward(const Napi::CallbackInfo& info) {
  const BackwardCall call(info);
  Environment& environment = Environment::of(info.Env());
  environment.runNow([&] {
    const LoopWait wait(environment);
    call.run();
  });
  return info.Env().Undefined();
}

Napi::Value backwardAsync(const Napi::CallbackInfo& info) {
  auto call = std::make_shared<BackwardCall>(info);
  return Environment::of(info.Env())
      .asyncWorker()
      .submit({
          [call] { call->run(); },
          [env = info.Env()] { return env.Undefined(); },
      });
}

Napi::Value gradients(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  const variable_list outputs = tensorsOf(environment, info[0], "outputs", "output");
  const variable_list inputs = tensorsOf(environment, info[1], "inputs", "input");
  for (const at::Tensor& tensor : inputs) {
    if (!tensor.defined() || !tensor.requires_grad()) {
      throw BridgeError("ERR_ARGUMENT",
                        "grad: every input must be a Tensor that requires gradients");
    }
  }
  for (const at::Tensor& tensor : outputs) {
    if (!tensor.defined() || !tensor.requires_grad()) {
      throw BridgeError("ERR_ARGUMENT", "grad: every output must be a Tensor with a graph");
    }
  }
  const auto options = info[2].As<Napi::Object>();
  const variable_list outputGradients = readGradients(environment, options, outputs);
  const bool retainGraph = boolOf(options.Get("retainGraph"), "retainGraph");
  const bool createGraph = boolOf(options.Get("createGraph"), "createGraph");
  const bool allowUnused = boolOf(options.Get("allowUnused"), "allowUnused");
  variable_list results;
  environment.runNow([&] {
    const LoopWait wait(environment);
    results = torch::autograd::grad(outputs, inputs, outputGradients, retainGraph, createGraph,
                                    allowUnused);
  });
  const Napi::Array array = Napi::Array::New(info.Env(), results.size());
  for (size_t i = 0; i < results.size(); i++) {
    array.Set(static_cast<uint32_t>(i),
              results[i].defined() ? wrapTensor(environment, results[i]) : info.Env().Null());
  }
  return array;
}

Napi::Value gradMode(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), at::GradMode::is_enabled());
}

Napi::Value setGradMode(const Napi::CallbackInfo& info) {
  at::GradMode::set_enabled(boolOf(info[0], "enabled"));
  return info.Env().Undefined();
}

}  // namespace

void exportAutogradFunctions(Napi::Object exports) {
  exportFunction<backward>(exports, "backward");
  exportFunction<backwardAsync>(exports, "backwardAsync");
  exportFunction<gradients>(exports, "gradients");
  exportFunction<gradMode>(exports, "gradMode");
  exportFunction<setGradMode>(exports, "setGradMode");
}

}  // namespace torchformer::bind
