#include "js_values.h"

#include <cmath>
#include <cstdio>

#include "errors.h"

namespace torchformer::bind {
namespace {

constexpr double kMaxSafeInteger = 9007199254740991.0;

[[noreturn]] void refuse(const char* what, const char* expected, const Napi::Value& value) {
  throw BridgeError("ERR_ARGUMENT",
                    std::string(what) + " must be " + expected + ", got " + describeValue(value));
}

}  // namespace

bool isSafeInteger(double number) {
  return std::trunc(number) == number && std::abs(number) <= kMaxSafeInteger;
}

std::optional<int64_t> readInteger(const Napi::Value& value, IntegerFault& fault) {
  if (value.IsNumber()) {
    const double number = value.As<Napi::Number>().DoubleValue();
    if (isSafeInteger(number)) return static_cast<int64_t>(number);
    const bool isWhole = std::trunc(number) == number && !std::isinf(number);
    fault = isWhole ? IntegerFault::tooLarge : IntegerFault::notAnInteger;
    return std::nullopt;
  }
  if (value.IsBigInt()) {
    bool lossless = false;
    const int64_t integer = value.As<Napi::BigInt>().Int64Value(&lossless);
    if (lossless) return integer;
    fault = IntegerFault::tooLarge;
    return std::nullopt;
  }
  fault = IntegerFault::notANumber;
  return std::nullopt;
}

int64_t integerOf(const Napi::Value& value, const char* what) {
  IntegerFault fault{};
  if (const auto integer = readInteger(value, fault)) return *integer;
  refuse(what, "an integer", value);
}

bool boolOf(const Napi::Value& value, const char* what) {
  if (!value.IsBoolean()) refuse(what, "a boolean", value);
  return value.As<Napi::Boolean>();
}

std::string stringOf(const Napi::Value& value, const char* what) {
  if (!value.IsString()) refuse(what, "a string", value);
  return value.As<Napi::String>();
}

std::vector<Napi::Value> arrayOf(const Napi::Value& value, const char* what) {
  if (!value.IsArray()) refuse(what, "an array", value);
  const auto array = value.As<Napi::Array>();
  const uint32_t length = array.Length();
  std::vector<Napi::Value> values;
  values.reserve(length);
  for (uint32_t i = 0; i < length; i++) values.push_back(array.Get(i));
  return values;
}

Napi::Value makeInteger(Napi::Env env, int64_t value) {
  if (std::abs(static_cast<double>(value)) <= kMaxSafeInteger) {
    return Napi::Number::New(env, static_cast<double>(value));
  }
  return Napi::BigInt::New(env, value);
}

std::string describeValue(const Napi::Value& value) {
  switch (value.Type()) {
    case napi_undefined:
      return "undefined";
    case napi_null:
      return "null";
    case napi_boolean:
      return value.As<Napi::Boolean>() ? "true" : "false";
    case napi_number: {
      char text[32];
      std::snprintf(text, sizeof text, "%.17g", value.As<Napi::Number>().DoubleValue());
      return text;
    }
    case napi_string: {
      std::string text = value.As<Napi::String>();
      constexpr size_t kLongest = 40;
      if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
      return "the string \"" + text + "\"";
    }
    case napi_symbol:
      return "a symbol";
    case napi_function:
      return "a function";
    case napi_bigint:
      return "a BigInt";
    default:
      return value.IsArray() ? "an array" : "an object";
  }
}

}  // namespace torchformer::bind
