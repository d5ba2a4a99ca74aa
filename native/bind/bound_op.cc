#include "bound_op.h"

#include <ATen/core/stack.h>
#include <c10/core/TensorOptions.h>

#include <array>
#include <sstream>
#include <utility>
#include <vector>

#include "call_frame.h"
#include "environment.h"
#include "errors.h"
#include "js_values.h"
#include "result.h"
#include "tensor_handle.h"
#include "worker.h"

namespace torchformer::bind {
namespace {

constexpr size_t kMostArguments = 40;

// The JS values by schema position; empty where the schema's default is used.
using ArgumentValues = std::array<Napi::Value, kMostArguments>;

std::string qualifiedName(const std::string& name, const std::string& overload) {
  return overload.empty() ? name : name + "." + overload;
}

int argumentOfResult(const c10::FunctionSchema& schema, const c10::Argument& result) {
  const c10::AliasInfo* alias = result.alias_info();
  if (alias == nullptr || !alias->isWrite() || result.type()->kind() != c10::TypeKind::TensorType) {
    return -1;
  }
  const auto& arguments = schema.arguments();
  for (size_t i = 0; i < arguments.size(); i++) {
    const c10::AliasInfo* other = arguments[i].alias_info();
    if (other != nullptr && other->isWrite() && other->beforeSet() == alias->beforeSet()) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

std::unique_ptr<BoundOp> bindOp(Environment& environment, const std::string& name,
                                const std::string& overload) {
  auto handle = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!handle) {
    throw BridgeError("ERR_UNKNOWN_OP", "no op named " + qualifiedName(name, overload));
  }
  const c10::FunctionSchema& schema = handle->schema();
  auto op = std::make_unique<BoundOp>(
      BoundOp{&environment, qualifiedName(name, overload), *handle, {}, 0, {}, {}});
  for (const c10::Argument& argument : schema.arguments()) {
    ArgumentPlan plan = planArgument(argument);
    if (plan.kind == ArgumentKind::unsupported && !plan.defaultValue && !plan.isOptional) {
      throw BridgeError("ERR_NOT_IMPLEMENTED",
                        op->name + " cannot be called from JavaScript: its argument '" + plan.name +
                            "' is of type " + plan.typeName);
    }
    if (!plan.isKeywordOnly) op->positionalCount++;
    op->takesGenerator |= plan.kind == ArgumentKind::generator;
    const c10::AliasInfo* alias = argument.alias_info();
    if (alias != nullptr && alias->isWrite() &&
        argument.type()->kind() == c10::TypeKind::ListType) {
      op->writtenLists.push_back(op->arguments.size());
    }
    op->arguments.push_back(std::move(plan));
  }
  if (op->arguments.size() >= kMostArguments) {
    throw BridgeError("ERR_NOT_IMPLEMENTED", op->name + " has too many arguments");
  }
  op->seedsOnCpu = op->handle.operator_name().getNamespace() == "torchformer";
  for (const c10::Argument& result : schema.returns()) {
    const int argument = argumentOfResult(schema, result);
    op->resultArguments.push_back(argument);
    op->movesStorage |= argument >= 0 && op->arguments[argument].isKeywordOnly;
  }
  op->movesStorage |= op->handle.hasTag(at::Tag::inplace_view);
  return op;
}

[[noreturn]] void refuseKeyword(const BoundOp& op, const std::string& key) {
  std::string valid;
  for (const ArgumentPlan& plan : op.arguments) valid += (valid.empty() ? "" : ", ") + plan.name;
  throw BridgeError("ERR_ARGUMENT",
                    op.name + ": unknown argument \"" + key + "\"; its arguments: " + valid);
}

void readKeywords(const BoundOp& op, const Napi::Object& keywords, ArgumentValues& values) {
  for (const Napi::Value& key : arrayOf(keywords.GetPropertyNames(), "argument names")) {
    const std::string name = key.As<Napi::String>();
    size_t position = 0;
    while (position < op.arguments.size() && op.arguments[position].name != name) position++;
    if (position == op.arguments.size()) refuseKeyword(op, name);
    if (!values[position].IsEmpty()) {
      throw BridgeError("ERR_ARGUMENT", op.name + ": argument '" + name + "' is given twice");
    }
    const Napi::Value value = keywords.Get(key);
    // `{dim: undefined}` means that the option is omitted.
    if (!value.IsUndefined()) values[position] = value;
  }
}

ArgumentValues placeArguments(const BoundOp& op, Environment& environment,
                              const Napi::CallbackInfo& info) {
  ArgumentValues values{};
  size_t count = info.Length();
  // `op(x, undefined)` means `op(x)`.
  while (count > 0 && info[count - 1].IsUndefined()) count--;
  size_t positional = count;
  if (count > 0 && isKeywordObject(environment, info[count - 1])) positional--;
  if (positional > op.positionalCount) {
    throw BridgeError("ERR_ARGUMENT",
                      op.name + " takes at most " + std::to_string(op.positionalCount) +
                          " positional arguments, got " + std::to_string(positional));
  }
  for (size_t i = 0; i < positional; i++) {
    if (!info[i].IsUndefined()) values[i] = info[i];
  }
  if (positional < count) readKeywords(op, info[count - 1].As<Napi::Object>(), values);
  return values;
}

c10::IValue valueWithoutArgument(const BoundOp& op, const ArgumentPlan& plan) {
  if (auto value = withoutValue(plan)) return *std::move(value);
  throw BridgeError("ERR_ARGUMENT",
                    op.name + ": argument '" + plan.name + "' (" + plan.typeName + ") is missing");
}

// The environment's generator is a CPU generator. libtorch's ops on other devices use the generator
// of the device; those of this package draw their seeds on the CPU for every device.
bool runsOnCpu(const torch::jit::Stack& stack) {
  for (const c10::IValue& value : stack) {
    if (value.isTensor() && value.toTensor().defined() && !value.toTensor().is_cpu()) return false;
    if (value.isDevice() && !value.toDevice().is_cpu()) return false;
  }
  return true;
}

torch::jit::Stack makeStack(const BoundOp& op, Environment& environment,
                            const ArgumentValues& values) {
  torch::jit::Stack stack;
  stack.reserve(op.arguments.size() + 4);
  for (size_t i = 0; i < op.arguments.size(); i++) {
    const ArgumentPlan& plan = op.arguments[i];
    stack.push_back(values[i].IsEmpty() ? valueWithoutArgument(op, plan)
                                        : readArgument(environment, op.name, plan, values[i]));
  }
  giveGenerator(op, environment, stack);
  return stack;
}

// For a Tensor that an op has written to, and that may have been disposed of in the meantime.
void updateSlot(Environment& environment, const Napi::Value& value) {
  TensorSlot* slot = slotOf(environment, value);
  if (slot != nullptr && !slot->isFree()) updateStorage(environment, *slot);
}

Napi::Value makeResults(const BoundOp& op, Environment& environment, const ArgumentValues& values,
                        torch::jit::Stack& stack) {
  const auto result = [&](size_t i) {
    const int argument = op.resultArguments[i];
    if (argument >= 0 && !values[argument].IsEmpty()) {
      if (op.movesStorage) updateSlot(environment, values[argument]);
      return values[argument];
    }
    return makeResult(environment, std::move(stack[i]), op.handle.schema().returns()[i]);
  };
  if (stack.empty()) return environment.env.Undefined();
  if (stack.size() == 1) return result(0);
  const Napi::Array array = Napi::Array::New(environment.env, stack.size());
  for (size_t i = 0; i < stack.size(); i++) array.Set(static_cast<uint32_t>(i), result(i));
  return array;
}

Napi::Value callNow(const Napi::CallbackInfo& info) {
  const auto& op = *static_cast<const BoundOp*>(info.Data());
  Environment& environment = Environment::of(info.Env());
  const ArgumentValues values = placeArguments(op, environment, info);
  torch::jit::Stack stack = makeStack(op, environment, values);
  environment.runNow([&] { callWith(op, stack); });
  return makeResults(op, environment, values, stack);
}

// Keeps the JS arguments alive that the results of an async call will be.
class KeptArguments {
 public:
  KeptArguments(const BoundOp& op, const ArgumentValues& values) {
    for (const int argument : op.resultArguments) {
      if (argument < 0 || values[argument].IsEmpty()) continue;
      kept_.emplace_back(argument, Napi::Persistent(values[argument].As<Napi::Object>()));
    }
  }

  ArgumentValues values() const {
    ArgumentValues values{};
    for (const auto& [argument, object] : kept_) values[argument] = object.Value();
    return values;
  }

 private:
  std::vector<std::pair<int, Napi::ObjectReference>> kept_;
};

Napi::Value callOffTheLoop(const Napi::CallbackInfo& info) {
  const auto* op = static_cast<const BoundOp*>(info.Data());
  Environment& environment = Environment::of(info.Env());
  const ArgumentValues values = placeArguments(*op, environment, info);
  auto stack = std::make_shared<torch::jit::Stack>(makeStack(*op, environment, values));
  auto kept = std::make_shared<KeptArguments>(*op, values);
  return environment.asyncWorker().submit({
      [op, stack] { callWith(*op, *stack); },
      [op, stack, kept, &environment] {
        return makeResults(*op, environment, kept->values(), *stack);
      },
  });
}

Napi::Value bind(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  std::shared_ptr<BoundOp> op = bindOp(Environment::of(env), stringOf(info[0], "op name"),
                                       stringOf(info[1], "overload name"));
  std::ostringstream schema;
  schema << op->handle.schema();
  const auto callable = Napi::Function::New<guarded<callNow>>(env, op->name, op.get());
  callable.Set("async", Napi::Function::New<guarded<callOffTheLoop>>(env, op->name, op.get()));
  callable.Set("schema", schema.str());
  callable.Set("frame", frameOf(Environment::of(env), *op));
  Environment::of(env).ownedOps.push_back(std::move(op));
  return callable;
}

Napi::Value listOps(const Napi::CallbackInfo& info) {
  const Napi::Array names = Napi::Array::New(info.Env());
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    // Names without a schema have kernels but cannot be called.
    if (!c10::Dispatcher::singleton().findSchema(name)) continue;
    names.Set(names.Length(), qualifiedName(name.name, name.overload_name));
  }
  return names;
}

Napi::Value overloads(const Napi::CallbackInfo& info) {
  const std::string wanted = stringOf(info[0], "op name");
  const Napi::Array names = Napi::Array::New(info.Env());
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name != wanted || !c10::Dispatcher::singleton().findSchema(name)) continue;
    names.Set(names.Length(), name.overload_name);
  }
  return names;
}

std::unique_ptr<BoundOp> opOf(const Napi::CallbackInfo& info) {
  return bindOp(Environment::of(info.Env()), stringOf(info[0], "op name"),
                stringOf(info[1], "overload name"));
}

Napi::Value kernels(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), opOf(info)->handle.dumpComputedTable());
}

Napi::Value hasKernel(const Napi::CallbackInfo& info) {
  const c10::Device device(stringOf(info[2], "device"));
  const auto key = c10::computeDispatchKey(std::nullopt, std::nullopt, device);
  return Napi::Boolean::New(info.Env(), opOf(info)->handle.hasKernelForDispatchKey(key));
}

}  // namespace

void callWith(const BoundOp& op, torch::jit::Stack& stack) {
  std::vector<at::Tensor> written;
  for (const size_t list : op.writtenLists) {
    if (!stack[list].isTensorList()) continue;
    for (const at::Tensor& tensor : stack[list].toTensorVector()) written.push_back(tensor);
  }
  op.handle.callBoxed(stack);
  // libtorch does not raise the version counters of what its fused optimizers write. Without that,
  // a backward pass that saved such a tensor, and weights that are kept packed for products, would
  // silently use old numbers.
  for (const at::Tensor& tensor : written) {
    if (tensor.defined() && !tensor.is_inference()) {
      tensor.unsafeGetTensorImpl()->bump_version();
    }
  }
}

void giveGenerator(const BoundOp& op, const Environment& environment, torch::jit::Stack& stack) {
  if (!op.takesGenerator || !(op.seedsOnCpu || runsOnCpu(stack))) return;
  for (size_t i = 0; i < op.arguments.size(); i++) {
    if (op.arguments[i].kind == ArgumentKind::generator && stack[i].isNone()) {
      stack[i] = environment.generator;
    }
  }
}

void exportDispatcherFunctions(Napi::Object exports) {
  exportFunction<listOps>(exports, "listOps");
  exportFunction<overloads>(exports, "overloads");
  exportFunction<bind>(exports, "bind");
  exportFunction<kernels>(exports, "kernels");
  exportFunction<hasKernel>(exports, "hasKernel");
}

}  // namespace torchformer::bind
