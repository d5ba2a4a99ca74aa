// Conversion of one JS value to an IValue by the type that the op's schema states.
#pragma once

#include <ATen/core/function_schema.h>
#include <c10/core/Scalar.h>
#include <napi.h>

#include <optional>
#include <string>

namespace torchformer::bind {

struct Environment;

enum class ArgumentKind {
  tensor,
  integer,
  real,
  boolean,
  scalar,
  string,
  scalarType,
  layout,
  memoryFormat,
  device,
  generator,
  unsupported,
};

// One argument of a schema, taken apart once when the op is bound.
struct ArgumentPlan {
  std::string name;
  ArgumentKind kind = ArgumentKind::unsupported;
  bool isList = false;
  bool isOptional = false;
  // `Tensor?[]`: elements may be null.
  bool hasOptionalElements = false;
  // `int[2]`: one number stands for that many.
  std::optional<int32_t> broadcastLength;
  bool isKeywordOnly = false;
  std::optional<c10::IValue> defaultValue;
  std::string typeName;
};

ArgumentPlan planArgument(const c10::Argument& argument);

// A JS number as a Scalar: an integer one if its value is, as Python's int, so that integer
// tensors stay integer; minus zero has no integer form.
at::Scalar scalarOf(double number);

// BridgeError ERR_ARGUMENT naming op, argument, expectation and what came.
c10::IValue readArgument(Environment& environment, const std::string& op, const ArgumentPlan& plan,
                         const Napi::Value& value);

// Whether a plain JS object can be a value for some argument: no kind takes one but for the
// wrapper of floating Scalars, so any other trailing object holds keyword arguments.
bool isKeywordObject(Environment& environment, const Napi::Value& value);

}  // namespace torchformer::bind
