// Exceptions become JS errors here and nowhere else. No C++ exception may leave a Node-API
// callback: it would end the process.
#pragma once

#include <napi.h>

#include <exception>
#include <string>
#include <utility>

namespace torchformer::bind {

struct Environment;

// A fault found by the bridge itself; `code` is one of TorchError's.
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

// A JS function that the backward pass called has thrown; the error itself waits in
// Environment::callbackError.
class CallbackFailed : public std::exception {
 public:
  const char* what() const noexcept override { return "a gradient hook failed"; }
};

struct ErrorReport {
  std::string code;
  std::string message;
};

// Code and one-paragraph message of any C++ exception; libtorch's stack only if TORCHFORMER_DEBUG
// is set.
ErrorReport describeException(const std::exception_ptr& exception);

// The JS error for any C++ exception: a TorchError (a plain Error with a code before
// `initialize`), or the JS exception itself that came through native code.
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

// For the few Node-API functions that are called without their C++ wrapper.
inline void check(napi_env env, napi_status status) {
  if (status != napi_ok) throw Napi::Error::New(env);
}

}  // namespace torchformer::bind
