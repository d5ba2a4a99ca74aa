// Ops of the dispatcher as JS functions, looked up once by name and called by schema.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <napi.h>

#include <string>
#include <vector>

#include "argument.h"

namespace torchformer::bind {

struct Environment;

struct BoundOp {
  // The environment outlives the op.
  Environment* environment = nullptr;
  std::string name;
  c10::OperatorHandle handle;
  std::vector<ArgumentPlan> arguments;
  size_t positionalCount = 0;
  // For each result, the index of the argument that it is (in-place and `out` ops), or -1.
  std::vector<int> resultArguments;
  // The arguments that are lists of tensors to write to, as in foreach and fused ops.
  std::vector<size_t> writtenLists;
  // Whether a result that is an argument may get another storage: by `set_`, `resize_`, or as
  // `out`.
  bool movesStorage = false;
  bool takesGenerator = false;
  // Whether a generator, if any, is the CPU's for every device.
  bool seedsOnCpu = false;
};

// Puts the environment's generator where `stack`, the arguments of a call, has none.
void giveGenerator(const BoundOp& op, const Environment& environment, torch::jit::Stack& stack);

// Calls the op with the arguments in `stack`, which its results replace.
void callWith(const BoundOp& op, torch::jit::Stack& stack);

// Adds `listOps`, `overloads`, `bind`, `kernels` and `hasKernel` to the addon's exports.
void exportDispatcherFunctions(Napi::Object exports);

}  // namespace torchformer::bind
