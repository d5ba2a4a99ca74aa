#include "call_frame.h"

#include <cmath>

#include "bound_op.h"
#include "environment.h"
#include "errors.h"
#include "js_values.h"
#include "tensor_handle.h"

namespace torchformer::bind {
namespace {

// Pushes the value of one argument; false if it needs the ordinary call.
bool pushArgument(Environment& environment, const ArgumentPlan& plan, FrameKind kind, double value,
                  torch::jit::Stack& stack) {
  if (kind == FrameKind::omitted) {
    if (plan.defaultValue) {
      stack.push_back(*plan.defaultValue);
    } else if (plan.isOptional) {
      stack.emplace_back();
    } else {
      return false;
    }
    return true;
  }
  if (kind == FrameKind::null && plan.isOptional) {
    stack.emplace_back();
    return true;
  }
  if (plan.isList) return false;
  if (kind == FrameKind::tensor && plan.kind == ArgumentKind::tensor) {
    const TensorSlot* slot = environment.tensors.find(static_cast<int64_t>(value));
    if (slot == nullptr || slot->isFree()) return false;
    stack.emplace_back(slot->tensor);
    return true;
  }
  if (kind == FrameKind::boolean) {
    if (plan.kind == ArgumentKind::boolean) {
      stack.emplace_back(value != 0);
    } else if (plan.kind == ArgumentKind::scalar) {
      stack.emplace_back(at::Scalar(value != 0));
    } else {
      return false;
    }
    return true;
  }
  if (kind != FrameKind::number) return false;
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
}

bool pushArguments(Environment& environment, const BoundOp& op, torch::jit::Stack& stack) {
  const CallFrame& frame = *environment.frame;
  size_t given = 0;
  while (given < CallFrame::kMostArguments && frame.kinds[given] != FrameKind::end) given++;
  if (given > op.positionalCount) return false;
  for (size_t i = 0; i < op.arguments.size(); i++) {
    const FrameKind kind = i < given ? frame.kinds[i] : FrameKind::omitted;
    if (!pushArgument(environment, op.arguments[i], kind, frame.values[i], stack)) return false;
  }
  return true;
}

double resultOf(Environment& environment, const BoundOp& op, torch::jit::Stack& stack) {
  const int argument = op.resultArguments[0];
  if (argument >= 0) return FrameResult::kFirstArgument - argument;
  at::Tensor tensor = std::move(stack[0]).toTensor();
  if (!tensor.defined()) return FrameResult::kNull;
  return static_cast<double>(holdTensor(environment, std::move(tensor)));
}

void callFrame(Environment& environment, const BoundOp& op) {
  // Reusing the stack avoids an allocation. An op may call JS functions that call ops, which then
  // find no stack and create their own.
  torch::jit::Stack stack = std::move(environment.spareStack);
  stack.clear();
  const bool taken = pushArguments(environment, op, stack);
  if (taken) environment.runNow([&] { op.handle.callBoxed(stack); });
  // Other calls may have used the frame in the meantime; from here on none can.
  environment.frame->values[0] = taken ? resultOf(environment, op, stack) : FrameResult::kRefused;
  stack.clear();
  environment.spareStack = std::move(stack);
}

}  // namespace

bool canUseFrame(const BoundOp& op) {
  const auto& returns = op.handle.schema().returns();
  if (returns.size() != 1 || returns[0].type()->kind() != c10::TypeKind::TensorType) return false;
  // A generator must be chosen by the device of the tensors.
  if (op.takesGenerator || op.arguments.size() > CallFrame::kMostArguments) return false;
  const int argument = op.resultArguments[0];
  if (argument < 0) return true;
  // The ordinary call updates the report of the argument.
  if (op.movesStorage) return false;
  // A result that is an argument must be one that every frame contains.
  const ArgumentPlan& plan = op.arguments[argument];
  return !plan.isKeywordOnly && !plan.isOptional && !plan.isList;
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

}  // namespace torchformer::bind
