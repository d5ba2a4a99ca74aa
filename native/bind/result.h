// Conversion of an op's results to JS.
#pragma once

#include <ATen/core/function_schema.h>
#include <napi.h>

namespace torchformer::bind {

struct Environment;

// Undefined tensors and None become null, integers numbers or BigInts, lists and tuples arrays,
// dtypes their names.
Napi::Value makeResult(Environment& environment, c10::IValue value, const c10::Argument& result);

}  // namespace torchformer::bind
