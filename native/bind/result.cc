#include "result.h"

#include <ATen/core/jit_type.h>

#include <sstream>

#include "environment.h"
#include "errors.h"
#include "js_values.h"
#include "names.h"
#include "tensor_handle.h"

namespace torchformer::bind {
namespace {

Napi::Value makeValue(Environment& environment, c10::IValue value);

template <typename Elements>
Napi::Value makeArray(Environment& environment, Elements&& elements) {
  const Napi::Array array = Napi::Array::New(environment.env, elements.size());
  for (size_t i = 0; i < elements.size(); i++) {
    array.Set(static_cast<uint32_t>(i), makeValue(environment, elements[i]));
  }
  return array;
}

Napi::Value makeScalar(Napi::Env env, const at::Scalar& scalar) {
  if (scalar.isBoolean()) return Napi::Boolean::New(env, scalar.toBool());
  if (scalar.isIntegral(false)) return makeInteger(env, scalar.toLong());
  if (scalar.isFloatingPoint()) return Napi::Number::New(env, scalar.toDouble());
  throw BridgeError("ERR_NOT_IMPLEMENTED", "a complex number cannot be converted to JavaScript");
}

Napi::Value makeValue(Environment& environment, c10::IValue value) {
  Napi::Env env = environment.env;
  if (value.isTensor()) {
    at::Tensor tensor = std::move(value).toTensor();
    return tensor.defined() ? wrapTensor(environment, std::move(tensor)) : env.Null();
  }
  if (value.isNone()) return env.Null();
  if (value.isBool()) return Napi::Boolean::New(env, value.toBool());
  if (value.isInt()) return makeInteger(env, value.toInt());
  if (value.isDouble()) return Napi::Number::New(env, value.toDouble());
  if (value.isSymInt()) return makeInteger(env, value.toSymInt().expect_int());
  if (value.isSymFloat()) return Napi::Number::New(env, value.toSymFloat().expect_float());
  if (value.isSymBool()) return Napi::Boolean::New(env, value.toSymBool().expect_bool());
  if (value.isScalar()) return makeScalar(env, value.toScalar());
  if (value.isString()) return Napi::String::New(env, value.toStringRef());
  if (value.isDevice()) return Napi::String::New(env, value.toDevice().str());
  if (value.isTensorList()) return makeArray(environment, value.toTensorVector());
  if (value.isList()) return makeArray(environment, value.toListRef());
  if (value.isTuple()) return makeArray(environment, value.toTupleRef().elements());
  std::ostringstream kind;
  kind << "a result of kind " << value.tagKind() << " cannot be converted to JavaScript";
  throw BridgeError("ERR_NOT_IMPLEMENTED", kind.str());
}

}  // namespace

Napi::Value makeResult(Environment& environment, c10::IValue value, const c10::Argument& result) {
  if (value.isInt() && result.real_type()->kind() == c10::TypeKind::ScalarTypeType) {
    return Napi::String::New(environment.env, nameOf(static_cast<c10::ScalarType>(value.toInt())));
  }
  return makeValue(environment, std::move(value));
}

}  // namespace torchformer::bind
