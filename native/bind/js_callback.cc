#include "js_callback.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <memory>
#include <type_traits>
#include <utility>

#include "environment.h"
#include "errors.h"
#include "js_values.h"
#include "tensor_handle.h"
#include "worker.h"

namespace torchformer::bind {

using torch::autograd::variable_list;

CallbackRegistry::CallbackRegistry(Environment& environment)
    : environment_(&environment), loopThread_(std::this_thread::get_id()) {}

size_t CallbackRegistry::add(Napi::Function call, Napi::Function release) {
  collect();
  const size_t id = nextId_++;
  entries_.emplace(id, Entry{Napi::Persistent(call), Napi::Persistent(release)});
  return id;
}

const CallbackRegistry::Entry& CallbackRegistry::entry(size_t id) const { return entries_.at(id); }

void CallbackRegistry::collect() {
  if (!hasDropped_.exchange(false)) return;
  std::vector<size_t> ids;
  {
    const std::lock_guard lock(mutex_);
    ids.swap(dropped_);
  }
  for (const size_t id : ids) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) continue;
    const Napi::FunctionReference release = std::move(found->second.release);
    entries_.erase(found);
    release.Call({});
  }
}

void CallbackRegistry::close() {
  entries_.clear();
  const std::lock_guard lock(mutex_);
  closed_ = true;
  environment_ = nullptr;
}

void CallbackRegistry::drop(size_t id) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  dropped_.push_back(id);
  hasDropped_ = true;
}

Environment& CallbackRegistry::environment() const {
  const std::lock_guard lock(mutex_);
  if (closed_) throw BridgeError("ERR_NATIVE", "the environment of a gradient hook has ended");
  return *environment_;
}

JsCallback::JsCallback(Environment& environment, Napi::Function call, Napi::Function release)
    : registry_(environment.callbacks), id_(registry_->add(call, release)) {}

JsCallback::~JsCallback() { release(); }

void JsCallback::release() {
  if (!released_) registry_->drop(id_);
  released_ = true;
}

variable_list JsCallback::callOnLoop(const variable_list& gradients) const {
  Environment& environment = registry_->environment();
  Napi::Env env = environment.env;
  const Napi::HandleScope scope(env);
  try {
    const Napi::Array array = Napi::Array::New(env, gradients.size());
    for (size_t i = 0; i < gradients.size(); i++) {
      array.Set(static_cast<uint32_t>(i),
                gradients[i].defined() ? wrapTensor(environment, gradients[i]) : env.Null());
    }
    const auto outcome = registry_->entry(id_).call.Call({array}).As<Napi::Object>();
    variable_list results;
    for (const Napi::Value& value : arrayOf(outcome.Get("results"), "results")) {
      results.push_back(isNullish(value) ? at::Tensor() : tensorOf(environment, value, "gradient"));
    }
    outcome.Get("done").As<Napi::Function>().Call({});
    return results;
  } catch (const Napi::Error& error) {
    // A JS error must not pass through the engine's threads, so it is stored here.
    environment.callbackError = error;
    throw CallbackFailed();
  }
}

variable_list JsCallback::operator()(const variable_list& gradients) const {
  if (registry_->isLoopThread()) return callOnLoop(gradients);
  Environment& environment = registry_->environment();
  // On a GPU, and in nested passes, the engine runs on its own threads while the caller of
  // backward() waits.
  if (environment.loopWaitsForBackward && !Worker::isWorkerThread()) {
    throw BridgeError("ERR_NATIVE",
                      "a JavaScript gradient hook would wait for the thread that waits for its "
                      "backward pass (on a GPU, or in a pass started within a hook); use "
                      "backwardAsync()");
  }
  variable_list results;
  environment.asyncWorker().runOnLoop([&] { results = callOnLoop(gradients); });
  return results;
}

namespace {

void checkHookResult(const at::Tensor& gradient, const at::Tensor& result) {
  if (!result.sizes().equals(gradient.sizes())) {
    throw BridgeError("ERR_SHAPE", "a gradient hook must return a gradient of the same shape");
  }
  if (result.scalar_type() != gradient.scalar_type()) {
    throw BridgeError("ERR_DTYPE", "a gradient hook must return a gradient of the same dtype");
  }
  if (result.device() != gradient.device()) {
    throw BridgeError("ERR_DEVICE", "a gradient hook must return a gradient on the same device");
  }
}

Napi::Value registerHook(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  const at::Tensor& tensor = tensorOf(environment, info[0], "tensor");
  if (!tensor.requires_grad()) {
    throw BridgeError("ERR_ARGUMENT", "registerHook: the tensor does not require gradients");
  }
  auto callback = std::make_shared<JsCallback>(environment, info[1].As<Napi::Function>(),
                                               info[2].As<Napi::Function>());
  const unsigned position = tensor.register_hook([callback](const at::Tensor& gradient) {
    const variable_list results = (*callback)({gradient});
    if (results.empty() || !results[0].defined()) return at::Tensor();
    checkHookResult(gradient, results[0]);
    return results[0];
  });
  return Napi::Number::New(info.Env(), position);
}

Napi::Value removeHook(const Napi::CallbackInfo& info) {
  const TensorSlot* slot = slotOf(Environment::of(info.Env()), info[0]);
  // If its tensor is disposed of, the hook is already removed.
  if (slot != nullptr && !slot->isFree()) {
    slot->tensor.remove_hook(static_cast<unsigned>(integerOf(info[1], "hook")));
  }
  return info.Env().Undefined();
}

// In newer versions of libtorch, nodes have their own reference count; in 2.11 they are held by
// shared_ptr, with a deleter that frees long graphs without recursion.
template <class T, class... Arguments>
auto makeNode(Arguments&&... arguments) {
  if constexpr (std::is_base_of_v<c10::intrusive_ptr_target, torch::autograd::Node>) {
    return c10::make_intrusive<T>(std::forward<Arguments>(arguments)...);
  } else {
    auto made = std::make_unique<T>(std::forward<Arguments>(arguments)...);
    return std::shared_ptr<T>(made.release(), [](T* node) { deleteNode(node); });
  }
}

// The graph node of a function whose backward is JS.
class JsNode final : public torch::autograd::Node {
 public:
  JsNode(Environment& environment, std::string name, Napi::Function call, Napi::Function release)
      : name_(std::move(name)), callback_(environment, call, release) {}

  variable_list apply(variable_list&& gradients) override {
    if (released_) {
      throw BridgeError("ERR_ARGUMENT",
                        name_ +
                            ": backward through the graph a second time; the saved tensors "
                            "are freed after the first unless it had { retainGraph: true }");
    }
    return callback_(gradients);
  }

  void release_variables() override {
    released_ = true;
    callback_.release();
  }

  std::string name() const override { return name_; }

 private:
  std::string name_;
  JsCallback callback_;
  bool released_ = false;
};

Napi::Value attachBackward(const Napi::CallbackInfo& info) {
  Environment& environment = Environment::of(info.Env());
  const variable_list inputs = tensorsOf(environment, info[1], "inputs", "inputs");
  const variable_list outputs = tensorsOf(environment, info[2], "outputs", "outputs");
  const auto node = makeNode<JsNode>(environment, stringOf(info[0], "name"),
                                     info[3].As<Napi::Function>(), info[4].As<Napi::Function>());
  node->set_next_edges(torch::autograd::collect_next_edges(inputs));
  const Napi::Array results = Napi::Array::New(info.Env(), outputs.size());
  for (size_t i = 0; i < outputs.size(); i++) {
    // An output may be an input or a view of one, so the history is set on a detached tensor.
    at::Tensor output = outputs[i].detach();
    if (torch::autograd::isDifferentiableType(output.scalar_type())) {
      torch::autograd::set_history(output, node);
    } else {
      node->add_input_metadata(torch::autograd::Node::undefined_input());
    }
    results.Set(static_cast<uint32_t>(i), wrapTensor(environment, std::move(output)));
  }
  return results;
}

}  // namespace

void exportCallbackFunctions(Napi::Object exports) {
  exportFunction<registerHook>(exports, "registerHook");
  exportFunction<removeHook>(exports, "removeHook");
  exportFunction<attachBackward>(exports, "attachBackward");
}

}  // namespace torchformer::bind
