// Conversions between JS and C++ where Node-API alone would lose or round values, and descriptions
// of values for error messages.
#pragma once

#include <napi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace torchformer::bind {

inline bool isNullish(const Napi::Value& value) { return value.IsUndefined() || value.IsNull(); }

// Whether a number is an integer to which no other integer is rounded.
bool isSafeInteger(double number);

enum class IntegerFault { notANumber, notAnInteger, tooLarge };
// A safe integer or a 64-bit BigInt; null and the fault otherwise. Never a rounded number.
std::optional<int64_t> readInteger(const Napi::Value& value, IntegerFault& fault);

// For fields that the TypeScript side has checked; BridgeError names `what` otherwise.
int64_t integerOf(const Napi::Value& value, const char* what);
bool boolOf(const Napi::Value& value, const char* what);
std::string stringOf(const Napi::Value& value, const char* what);
std::vector<Napi::Value> arrayOf(const Napi::Value& value, const char* what);

// A number if it is exact, else a BigInt.
Napi::Value makeInteger(Napi::Env env, int64_t value);

// Describes the given value for error messages: "the string \"ab\"", "null", "an array", "3.5".
std::string describeValue(const Napi::Value& value);

}  // namespace torchformer::bind
