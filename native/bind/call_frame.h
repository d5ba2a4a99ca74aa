// Memory shared by TypeScript and native code, for calls whose arguments are tensors, numbers,
// booleans, strings and null: TypeScript writes them there, so that such a call needs no Node-API
// function to read an argument or to create a result. Each of those takes 10 to 800 ns, together as
// long as a small op itself.
#pragma once

#include <napi.h>

#include <cstddef>
#include <cstdint>

namespace torchformer::bind {

struct BoundOp;
struct Environment;

enum class FrameKind : uint8_t { omitted, null, tensor, number, boolean, string };

struct CallFrame {
  // Also of results.
  static constexpr size_t kMostArguments = 16;
  // By position in the schema: the slot of a tensor, 0 or 1 for a boolean, the number of a string.
  double values[kMostArguments];
  FrameKind kinds[kMostArguments];
};

// The results of a call in `values`: for each the slot of a new tensor, or one of these.
struct FrameResult {
  // An undefined tensor.
  static constexpr double kNull = 0;
  // As the first result: the ordinary call is needed, which also throws the errors. Nothing has
  // run.
  static constexpr double kRefused = -1;
  // The result is the argument at `kFirstArgument - value`.
  static constexpr double kFirstArgument = -2;
};

// The memory and the numbers above, for lib/tensor/callFrame.ts.
Napi::Object makeFrame(Environment& environment);

// How to call an op with the frame; undefined if a frame cannot return its results.
Napi::Value frameOf(Environment& environment, const BoundOp& op);

// Adds `frameString` to the addon's exports.
void exportFrameFunctions(Napi::Object exports);

}  // namespace torchformer::bind
