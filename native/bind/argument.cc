#include "argument.h"

#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <cmath>
#include <sstream>

#include "environment.h"
#include "errors.h"
#include "js_values.h"
#include "names.h"
#include "tensor_handle.h"

namespace torchformer::bind {
namespace {

ArgumentKind kindOf(const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      return ArgumentKind::tensor;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return ArgumentKind::integer;
    case c10::TypeKind::FloatType:
      return ArgumentKind::real;
    case c10::TypeKind::BoolType:
      return ArgumentKind::boolean;
    case c10::TypeKind::NumberType:
      return ArgumentKind::scalar;
    case c10::TypeKind::StringType:
      return ArgumentKind::string;
    case c10::TypeKind::ScalarTypeType:
      return ArgumentKind::scalarType;
    case c10::TypeKind::LayoutType:
      return ArgumentKind::layout;
    case c10::TypeKind::MemoryFormatType:
      return ArgumentKind::memoryFormat;
    case c10::TypeKind::DeviceObjType:
      return ArgumentKind::device;
    case c10::TypeKind::GeneratorType:
      return ArgumentKind::generator;
    default:
      return ArgumentKind::unsupported;
  }
}

// The op, argument and index of a value, for messages.
struct Place {
  Environment& environment;
  const std::string& op;
  const ArgumentPlan& plan;
  std::optional<size_t> index;

  [[noreturn]] void refuse(const std::string& expected, const Napi::Value& value) const {
    refuseBecause("must be " + expected + ", got " + describeValue(value));
  }

  [[noreturn]] void refuseBecause(const std::string& reason,
                                  const char* code = "ERR_ARGUMENT") const {
    std::ostringstream message;
    message << op << ": argument '" << plan.name << "'";
    if (index) message << '[' << *index << ']';
    message << " (" << plan.typeName << ") " << reason;
    throw BridgeError(code, message.str());
  }
};

int64_t readPlacedInteger(const Place& place, const Napi::Value& value) {
  IntegerFault fault{};
  if (const auto integer = readInteger(value, fault)) return *integer;
  switch (fault) {
    case IntegerFault::tooLarge:
      place.refuse("an integer of at most 2^53 - 1, or a BigInt of 64 bits", value);
    case IntegerFault::notAnInteger:
    case IntegerFault::notANumber:
      place.refuse("an integer", value);
  }
  place.refuse("an integer", value);
}

// `value` of a FloatScalar; null for anything else.
std::optional<double> readFloatScalar(const Environment& environment, const Napi::Value& value) {
  if (!value.IsObject()) return std::nullopt;
  const auto object = value.As<Napi::Object>();
  if (!object.InstanceOf(environment.floatScalarClass.Value())) return std::nullopt;
  return object.Get("value").As<Napi::Number>().DoubleValue();
}

at::Scalar readScalar(const Place& place, const Napi::Value& value) {
  if (value.IsNumber()) {
    return scalarOf(value.As<Napi::Number>().DoubleValue());
  }
  if (value.IsBoolean()) return at::Scalar(value.As<Napi::Boolean>().Value());
  if (value.IsBigInt()) return at::Scalar(readPlacedInteger(place, value));
  if (const auto number = readFloatScalar(place.environment, value)) return at::Scalar(*number);
  place.refuse("a number, BigInt, boolean or float(number)", value);
}

double readReal(const Place& place, const Napi::Value& value) {
  if (value.IsNumber()) return value.As<Napi::Number>().DoubleValue();
  if (const auto number = readFloatScalar(place.environment, value)) return *number;
  place.refuse("a number", value);
}

bool readBoolean(const Place& place, const Napi::Value& value) {
  if (!value.IsBoolean()) place.refuse("a boolean", value);
  return value.As<Napi::Boolean>();
}

std::string readString(const Place& place, const Napi::Value& value) {
  if (!value.IsString()) place.refuse("a string", value);
  return value.As<Napi::String>();
}

at::Tensor readTensor(const Place& place, const Napi::Value& value) {
  const TensorSlot* slot = slotOf(place.environment, value);
  if (slot == nullptr) place.refuse("a Tensor of this thread", value);
  if (slot->isFree()) {
    place.refuseBecause(
        "has been disposed of; keep() it or return it from tidy() if it is needed later",
        "ERR_DISPOSED");
  }
  return slot->tensor;
}

template <typename Value>
std::optional<c10::IValue> numbered(const std::optional<Value>& value) {
  return value ? std::optional<c10::IValue>(static_cast<int64_t>(*value)) : std::nullopt;
}

std::optional<c10::IValue> deviceOf(const std::string& name) {
  try {
    return c10::Device(name);
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

c10::IValue readName(const Place& place, const Napi::Value& value, const std::string& expected) {
  if (value.IsString()) {
    if (auto named = namedValue(place.plan.kind, value.As<Napi::String>())) return *named;
  }
  place.refuse(expected, value);
}

c10::IValue readSingle(const Place& place, const Napi::Value& value) {
  switch (place.plan.kind) {
    case ArgumentKind::tensor:
      return readTensor(place, value);
    case ArgumentKind::integer:
      return readPlacedInteger(place, value);
    case ArgumentKind::real:
      return readReal(place, value);
    case ArgumentKind::boolean:
      return readBoolean(place, value);
    case ArgumentKind::scalar:
      return readScalar(place, value);
    case ArgumentKind::string:
      return readString(place, value);
    case ArgumentKind::scalarType:
      return readName(place, value, "one of " + scalarTypeNames());
    case ArgumentKind::layout:
      return readName(place, value, "'strided', 'sparse_coo' or 'sparse_csr'");
    case ArgumentKind::memoryFormat:
      return readName(
          place, value,
          "'contiguous_format', 'preserve_format', 'channels_last' or 'channels_last_3d'");
    case ArgumentKind::device:
      return readName(place, value, "a device name such as 'cpu' or 'cuda:0'");
    case ArgumentKind::generator:
      place.refuse("left out (manualSeed() seeds the generator used)", value);
    case ArgumentKind::unsupported:
      place.refuseBecause("has a type that cannot be passed from JavaScript");
  }
  place.refuseBecause("has an unknown kind");
}

template <typename Element, typename Read>
c10::List<Element> readElements(Place& place, const std::vector<Napi::Value>& values, Read read) {
  c10::List<Element> list;
  list.reserve(values.size());
  for (size_t i = 0; i < values.size(); i++) {
    place.index = i;
    list.push_back(read(values[i]));
  }
  return list;
}

c10::IValue readList(Place place, const Napi::Value& value) {
  std::vector<Napi::Value> values;
  if (value.IsArray()) {
    values = arrayOf(value, "list");
  } else if (place.plan.broadcastLength && !value.IsObject()) {
    values.assign(static_cast<size_t>(*place.plan.broadcastLength), value);
  } else {
    place.refuse("an array", value);
  }
  switch (place.plan.kind) {
    case ArgumentKind::tensor:
      if (place.plan.hasOptionalElements) {
        return readElements<std::optional<at::Tensor>>(
            place, values, [&](const Napi::Value& element) {
              return isNullish(element) ? std::nullopt
                                        : std::optional<at::Tensor>(readTensor(place, element));
            });
      }
      return readElements<at::Tensor>(
          place, values, [&](const Napi::Value& element) { return readTensor(place, element); });
    case ArgumentKind::integer:
      return readElements<int64_t>(place, values, [&](const Napi::Value& element) {
        return readPlacedInteger(place, element);
      });
    case ArgumentKind::real:
      return readElements<double>(
          place, values, [&](const Napi::Value& element) { return readReal(place, element); });
    case ArgumentKind::boolean:
      return readElements<bool>(
          place, values, [&](const Napi::Value& element) { return readBoolean(place, element); });
    case ArgumentKind::scalar:
      return readElements<at::Scalar>(
          place, values, [&](const Napi::Value& element) { return readScalar(place, element); });
    case ArgumentKind::string:
      return readElements<std::string>(
          place, values, [&](const Napi::Value& element) { return readString(place, element); });
    default:
      place.refuseBecause("has a type that cannot be passed from JavaScript");
  }
}

}  // namespace

at::Scalar scalarOf(double number) {
  const bool isInteger = isSafeInteger(number) && !(number == 0 && std::signbit(number));
  return isInteger ? at::Scalar(static_cast<int64_t>(number)) : at::Scalar(number);
}

ArgumentPlan planArgument(const c10::Argument& argument) {
  ArgumentPlan plan;
  plan.name = argument.name();
  plan.isKeywordOnly = argument.kwarg_only();
  plan.defaultValue = argument.default_value();
  // Unlike `real_type()`, `type()` is int for dtypes, layouts and memory formats.
  c10::TypePtr type = argument.real_type();
  plan.typeName = type->annotation_str();
  if (const auto optional = type->cast<c10::OptionalType>()) {
    plan.isOptional = true;
    type = optional->getElementType();
  }
  if (const auto list = type->cast<c10::ListType>()) {
    plan.isList = true;
    plan.broadcastLength = argument.N();
    type = list->getElementType();
    if (const auto optional = type->cast<c10::OptionalType>()) {
      plan.hasOptionalElements = true;
      type = optional->getElementType();
    }
  }
  plan.kind = kindOf(type);
  return plan;
}

std::optional<c10::IValue> withoutValue(const ArgumentPlan& plan) {
  if (plan.defaultValue) return plan.defaultValue;
  if (plan.isOptional) return c10::IValue();
  return std::nullopt;
}

std::optional<c10::IValue> namedValue(ArgumentKind kind, const std::string& name) {
  switch (kind) {
    case ArgumentKind::scalarType:
      return numbered(scalarTypeOf(name));
    case ArgumentKind::layout:
      return numbered(layoutOf(name));
    case ArgumentKind::memoryFormat:
      return numbered(memoryFormatOf(name));
    case ArgumentKind::device:
      return deviceOf(name);
    default:
      return std::nullopt;
  }
}

c10::IValue readArgument(Environment& environment, const std::string& op, const ArgumentPlan& plan,
                         const Napi::Value& value) {
  const Place place{environment, op, plan, std::nullopt};
  if (plan.isOptional && isNullish(value)) return c10::IValue();
  return plan.isList ? readList(place, value) : readSingle(place, value);
}

bool isKeywordObject(Environment& environment, const Napi::Value& value) {
  if (value.Type() != napi_object) return false;
  if (slotOf(environment, value) != nullptr || value.IsArray()) return false;
  return !value.As<Napi::Object>().InstanceOf(environment.floatScalarClass.Value());
}

}  // namespace torchformer::bind
