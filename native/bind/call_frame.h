// Memory that TypeScript and native code share, for calls whose arguments are tensors, numbers,
// booleans and null: TypeScript writes them there, so that such a call needs no Node-API function
// to read an argument or to make a result. Each of those costs 10 to 800 ns, as much together as
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
  // For a tensor its slot, for a boolean 0 or 1.
  double values[kMostArguments + 1];
  FrameKind kinds[kMostArguments + 1];
};

// What a call leaves in values[0]: the slot of a new tensor, or one of these.
struct FrameResult {
  // An undefined tensor.
  static constexpr double kNull = 0;
  // Something here needs the ordinary call, which also words the errors. Nothing has run.
  static constexpr double kRefused = -1;
  // The result is the argument `kFirstArgument - values[0]`.
  static constexpr double kFirstArgument = -2;
};

// Whether an op has the kind of result that a frame can tell: one tensor.
bool canUseFrame(const BoundOp& op);

// Calls the op (`data` of the function) with what lies in the environment's frame.
napi_value callWithFrame(napi_env env, napi_callback_info info);

}  // namespace torchformer::bind
