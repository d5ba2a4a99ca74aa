// Exceptions are converted to JS errors only here. No C++ exception may leave a Node-API callback,
// because it would end the process.
#pragma once

#include <napi.h>

#include <exception>
#include <string>
#include <utility>

namespace torchformer::bind {

struct Environment;

// An error of the bridge itself; `code` is one of TorchError's codes.
class BridgeError : public std::exception {
 public:
  BridgeError(std::string code, std::string message)
      : code_(std::move(code)), message_(std::move(message)) {}
  const std::string& code() const { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string code_;
  std::string message_;
};

// A JS function that the backward pass called has thrown; its error is in
// Environment::callbackError.
class CallbackFailed : public std::exception {
 public:
  const char* what() const noexcept override { return "a gradient hook failed"; }
};

struct ErrorReport {
  std::string code;
  std::string message;
};

// Code and one-paragraph message of any C++ exception, with libtorch's stack only if
// TORCHFORMER_DEBUG is set.
ErrorReport describeException(const std::exception_ptr& exception);

// The JS error for any C++ exception: a TorchError (before `initialize`, an Error with a code), or
// the original JS exception if it passed through native code.
Napi::Error makeError(Napi::Env env, const std::exception_ptr& exception);

// Every callback of the addon goes through this wrapper.
template <Napi::Value (*callback)(const Napi::CallbackInfo&)>
Napi::Value guarded(const Napi::CallbackInfo& info) {
  try {
    return callback(info);
  } catch (...) {
    throw makeError(info.Env(), std::current_exception());
  }
}

template <Napi::Value (*callback)(const Napi::CallbackInfo&)>
void exportFunction(Napi::Object exports, const char* name) {
  exports.Set(name, Napi::Function::New<guarded<callback>>(exports.Env(), name));
}

// For Node-API functions that are called without their C++ wrappers.
inline void check(napi_env env, napi_status status) {
  if (status != napi_ok) throw Napi::Error::New(env);
}

}  // namespace torchformer::bind
