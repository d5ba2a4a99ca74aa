#include "call_frame.h"

#include <new>

#include "bound_op.h"
#include "environment.h"
#include "errors.h"
#include "js_values.h"
#include "tensor_handle.h"

namespace torchformer::bind {
namespace {

// Pushes the value of one argument; returns false if the ordinary call is needed.
bool pushArgument(Environment& environment, const ArgumentPlan& plan, FrameKind kind, double value,
                  torch::jit::Stack& stack) {
  const auto push = [&](std::optional<c10::IValue> made) {
    if (made) stack.push_back(*std::move(made));
    return made.has_value();
  };
  if (kind == FrameKind::omitted) {
    if (plan.defaultValue)
      stack.push_back(*plan.defaultValue);
    else if (plan.isOptional)
      stack.emplace_back();
    return plan.defaultValue || plan.isOptional;
  }
  if (kind == FrameKind::null && plan.isOptional) {
    stack.emplace_back();
    return true;
  }
  if (plan.isList) return false;
  switch (kind) {
    case FrameKind::tensor: {
      const TensorSlot* slot = environment.tensors.find(static_cast<int64_t>(value));
      if (plan.kind != ArgumentKind::tensor || slot == nullptr || slot->isFree()) return false;
      stack.emplace_back(slot->tensor);
      return true;
    }
    case FrameKind::number:
      switch (plan.kind) {
        case ArgumentKind::integer:
          if (!isSafeInteger(value)) return false;
          stack.emplace_back(static_cast<int64_t>(value));
          return true;
        case ArgumentKind::real:
          stack.emplace_back(value);
          return true;
        case ArgumentKind::scalar:
          stack.emplace_back(scalarOf(value));
          return true;
        default:
          return false;
      }
    case FrameKind::boolean:
      if (plan.kind == ArgumentKind::boolean) return push(value != 0);
      return plan.kind == ArgumentKind::scalar && push(at::Scalar(value != 0));
    case FrameKind::string: {
      const c10::IValue& text = environment.frameStrings[static_cast<size_t>(value)];
      if (plan.kind == ArgumentKind::string) return push(text);
      return push(namedValue(plan.kind, text.toStringRef()));
    }
    default:
      return false;
  }
}

bool pushArguments(Environment& environment, const BoundOp& op, torch::jit::Stack& stack) {
  const CallFrame& frame = *environment.frame;
  for (size_t i = 0; i < op.arguments.size(); i++) {
    if (!pushArgument(environment, op.arguments[i], frame.kinds[i], frame.values[i], stack)) {
      return false;
    }
  }
  if (op.takesGenerator) giveGenerator(op, environment, stack);
  return true;
}

double resultOf(Environment& environment, int argument, c10::IValue value) {
  if (argument >= 0) return FrameResult::kFirstArgument - argument;
  at::Tensor tensor = std::move(value).toTensor();
  if (!tensor.defined()) return FrameResult::kNull;
  return static_cast<double>(holdTensor(environment, std::move(tensor)));
}

void callFrame(Environment& environment, const BoundOp& op) {
  // Reusing a stack saves an allocation. An op may call JS functions that call ops: those find no
  // stack and create their own.
  torch::jit::Stack stack = std::move(environment.spareStack);
  stack.clear();
  if (pushArguments(environment, op, stack)) {
    environment.runNow([&] { callWith(op, stack); });
    // Other calls may have used the frame in the meantime. From here on, none can.
    environment.frame->values[0] = FrameResult::kNull;
    for (size_t i = 0; i < stack.size(); i++) {
      environment.frame->values[i] =
          resultOf(environment, op.resultArguments[i], std::move(stack[i]));
    }
  } else {
    environment.frame->values[0] = FrameResult::kRefused;
  }
  stack.clear();
  environment.spareStack = std::move(stack);
}

napi_value callWithFrame(napi_env env, napi_callback_info info) {
  try {
    void* data = nullptr;
    check(env, napi_get_cb_info(env, info, nullptr, nullptr, nullptr, &data));
    const auto& op = *static_cast<const BoundOp*>(data);
    callFrame(*op.environment, op);
  } catch (...) {
    makeError(env, std::current_exception()).ThrowAsJavaScriptException();
  }
  return nullptr;
}

bool canUseFrame(const BoundOp& op) {
  // Only the ordinary call checks for a new storage of an argument.
  if (op.arguments.size() > CallFrame::kMostArguments || op.movesStorage) return false;
  const auto& returns = op.handle.schema().returns();
  if (returns.size() > CallFrame::kMostArguments) return false;
  for (size_t i = 0; i < returns.size(); i++) {
    if (returns[i].type()->kind() != c10::TypeKind::TensorType) return false;
    const int argument = op.resultArguments[i];
    // An omitted argument could not be the result.
    if (argument >= 0 && (op.arguments[argument].isOptional || op.arguments[argument].isList)) {
      return false;
    }
  }
  return true;
}

Napi::Value frameString(const Napi::CallbackInfo& info) {
  auto& strings = Environment::of(info.Env()).frameStrings;
  strings.emplace_back(stringOf(info[0], "string"));
  return Napi::Number::New(info.Env(), static_cast<double>(strings.size()) - 1);
}

}  // namespace

Napi::Object makeFrame(Environment& environment) {
  Napi::Env env = environment.env;
  auto memory = Napi::ArrayBuffer::New(env, sizeof(CallFrame));
  environment.frameBuffer = Napi::Persistent(memory);
  environment.frame = new (memory.Data()) CallFrame{};
  Napi::Object frame = Napi::Object::New(env);
  const auto kind = [&](const char* name, FrameKind value) {
    frame.Set(name, static_cast<double>(value));
  };
  frame.Set("memory", memory);
  frame.Set("mostArguments", static_cast<double>(CallFrame::kMostArguments));
  kind("omitted", FrameKind::omitted);
  kind("null", FrameKind::null);
  kind("tensor", FrameKind::tensor);
  kind("number", FrameKind::number);
  kind("boolean", FrameKind::boolean);
  kind("string", FrameKind::string);
  frame.Set("nullResult", FrameResult::kNull);
  frame.Set("refused", FrameResult::kRefused);
  frame.Set("firstArgument", FrameResult::kFirstArgument);
  return frame;
}

Napi::Value frameOf(Environment& environment, const BoundOp& op) {
  Napi::Env env = environment.env;
  if (!canUseFrame(op)) return env.Undefined();
  napi_value call = nullptr;
  check(env, napi_create_function(env, op.name.data(), op.name.size(), callWithFrame,
                                  const_cast<BoundOp*>(&op), &call));
  const Napi::Array names = Napi::Array::New(env, op.arguments.size());
  for (size_t i = 0; i < op.arguments.size(); i++) {
    names.Set(static_cast<uint32_t>(i), op.arguments[i].name);
  }
  Napi::Object frame = Napi::Object::New(env);
  frame.Set("call", call);
  frame.Set("argumentNames", names);
  frame.Set("positionalCount", static_cast<double>(op.positionalCount));
  frame.Set("resultCount", static_cast<double>(op.resultArguments.size()));
  return frame;
}

void exportFrameFunctions(Napi::Object exports) {
  exportFunction<frameString>(exports, "frameString");
}

}  // namespace torchformer::bind
