// Conversion of one JS value to an IValue by its type in the op's schema.
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

// One argument of a schema, parsed once when the op is bound.
struct ArgumentPlan {
  std::string name;
  ArgumentKind kind = ArgumentKind::unsupported;
  bool isList = false;
  bool isOptional = false;
  // `Tensor?[]`: elements may be null.
  bool hasOptionalElements = false;
  // `int[2]`: one number is repeated this many times.
  std::optional<int32_t> broadcastLength;
  bool isKeywordOnly = false;
  std::optional<c10::IValue> defaultValue;
  std::string typeName;
};

ArgumentPlan planArgument(const c10::Argument& argument);

// A JS number as a Scalar: an integer if its value is one, like Python's int, so that integer
// tensors stay integer. Minus zero is not an integer.
at::Scalar scalarOf(double number);

// The value of an omitted argument; null if the argument is required.
std::optional<c10::IValue> withoutValue(const ArgumentPlan& plan);

// The value that a name of a dtype, layout, memory format or device stands for in PyTorch; null for
// unknown names and other kinds.
std::optional<c10::IValue> namedValue(ArgumentKind kind, const std::string& name);

// Throws BridgeError ERR_ARGUMENT naming the op, the argument, the expected and the given value.
c10::IValue readArgument(Environment& environment, const std::string& op, const ArgumentPlan& plan,
                         const Napi::Value& value);

// Whether a JS object contains keyword arguments: the only object that is the value of an argument,
// besides tensors and arrays, is the wrapper of floating-point Scalars.
bool isKeywordObject(Environment& environment, const Napi::Value& value);

}  // namespace torchformer::bind
