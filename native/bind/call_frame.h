// Memory shared by TypeScript and native code, for calls whose arguments are tensors, numbers,
// booleans and null: TypeScript writes them there, so that such a call needs no Node-API function
// to read an argument or to create a result. Each of those takes 10 to 800 ns, together as long as
// a small op itself.
#pragma once

#include <node_api.h>

#include <cstddef>
#include <cstdint>

namespace torchformer::bind {

struct BoundOp;

// The same numbers as in lib/tensor/callFrame.ts.
enum class FrameKind : uint8_t { end = 0, omitted, null, tensor, number, boolean };

struct CallFrame {
  static constexpr size_t kMostArguments = 15;
  // The slot of a tensor, 0 or 1 for a boolean.
  double values[kMostArguments + 1];
  FrameKind kinds[kMostArguments + 1];
};

// The result of a call in values[0]: the slot of a new tensor, or one of these.
struct FrameResult {
  // An undefined tensor.
  static constexpr double kNull = 0;
  // The ordinary call is needed, which also throws the errors. Nothing has run.
  static constexpr double kRefused = -1;
  // The result is the argument `kFirstArgument - values[0]`.
  static constexpr double kFirstArgument = -2;
};

// Whether a frame can return the result of an op, which must be one tensor.
bool canUseFrame(const BoundOp& op);

// Calls the op (`data` of the function) with the arguments in the environment's frame.
napi_value callWithFrame(napi_env env, napi_callback_info info);

}  // namespace torchformer::bind
