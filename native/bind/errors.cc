#include "errors.h"

#include <c10/util/Exception.h>

#include <array>
#include <cstdlib>
#include <new>
#include <string_view>

#include "cuda_faults.h"
#include "environment.h"

namespace torchformer::bind {
namespace {

struct MessageRule {
  std::string_view part;
  const char* code;
};

// libtorch has few exception classes; most errors can be told apart only by their messages.
constexpr std::array kMessageRules = {
    MessageRule{"can't allocate memory", "ERR_OUT_OF_MEMORY"},
    MessageRule{"out of memory", "ERR_OUT_OF_MEMORY"},
    MessageRule{"Storage size calculation overflowed", "ERR_OUT_OF_MEMORY"},
    MessageRule{"NVIDIA driver", "ERR_CUDA_UNAVAILABLE"},
    MessageRule{"Cannot initialize CUDA", "ERR_CUDA_UNAVAILABLE"},
    MessageRule{"Cannot access accelerator device", "ERR_CUDA_UNAVAILABLE"},
    MessageRule{"pin_memory=True requires a CUDA", "ERR_CUDA_UNAVAILABLE"},
    MessageRule{"PyTorch is not linked with support for cuda", "ERR_CUDA_UNAVAILABLE"},
    MessageRule{"'CUDA' backend", "ERR_CUDA_UNAVAILABLE"},
    MessageRule{"same device", "ERR_DEVICE"},
    MessageRule{"on the same device", "ERR_DEVICE"},
    MessageRule{"Expected all tensors to be on", "ERR_DEVICE"},
    MessageRule{"out of range", "ERR_INDEX"},
    MessageRule{"out of bounds", "ERR_INDEX"},
    MessageRule{"dtype", "ERR_DTYPE"},
    MessageRule{"scalar type", "ERR_DTYPE"},
    MessageRule{"data type", "ERR_DTYPE"},
    MessageRule{"not implemented for", "ERR_DTYPE"},
    MessageRule{"can't be cast", "ERR_DTYPE"},
    MessageRule{"shape", "ERR_SHAPE"},
    MessageRule{"size", "ERR_SHAPE"},
    MessageRule{"dimension", "ERR_SHAPE"},
    MessageRule{"broadcast", "ERR_SHAPE"},
    MessageRule{"Dimension", "ERR_SHAPE"},
};

bool debugging() {
  const char* value = std::getenv("TORCHFORMER_DEBUG");
  return value != nullptr && *value != '\0';
}

// Messages of the ops in native/core begin with their code: "[ERR_SHAPE] attention: ...".
bool takeCodePrefix(std::string& message, std::string& code) {
  if (message.rfind("[ERR_", 0) != 0) return false;
  const size_t end = message.find(']');
  if (end == std::string::npos) return false;
  code = message.substr(1, end - 1);
  message.erase(0, message.find_first_not_of(' ', end + 1));
  return true;
}

std::string codeOfMessage(std::string_view message, const char* otherwise) {
  for (const MessageRule& rule : kMessageRules) {
    if (message.find(rule.part) != std::string_view::npos) return rule.code;
  }
  return otherwise;
}

// Removes what libtorch adds for its own developers: the location of the check at the start, the
// list of backends at the end.
void trimForReaders(std::string& message) {
  constexpr std::string_view kCheckPlace = "[enforce fail at ";
  if (message.rfind(kCheckPlace, 0) == 0) {
    const size_t end = message.find(". ");
    if (end != std::string::npos) message.erase(0, end + 2);
  }
  const size_t advice = message.find(" This could be because the operator doesn't exist");
  if (advice != std::string::npos) message.erase(advice);
}

ErrorReport describeTorchError(const c10::Error& error, const char* knownCode) {
  ErrorReport report;
  report.message = error.what_without_backtrace();
  if (!takeCodePrefix(report.message, report.code)) {
    if (auto fault = describeCudaFault(report.message)) {
      report = std::move(*fault);
    } else {
      report.code = knownCode != nullptr ? knownCode : codeOfMessage(report.message, "ERR_NATIVE");
    }
  }
  if (debugging()) {
    report.message = error.what();
  } else {
    trimForReaders(report.message);
  }
  return report;
}

}  // namespace

ErrorReport describeException(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const BridgeError& error) {
    return {error.code(), error.what()};
  } catch (const c10::OutOfMemoryError& error) {
    return describeTorchError(error, "ERR_OUT_OF_MEMORY");
  } catch (const c10::IndexError& error) {
    return describeTorchError(error, "ERR_INDEX");
  } catch (const c10::NotImplementedError& error) {
    const std::string code = codeOfMessage(error.what_without_backtrace(), "ERR_NOT_IMPLEMENTED");
    // A kernel that is missing for a shape or dtype is above all a missing kernel.
    return describeTorchError(
        error, code == "ERR_CUDA_UNAVAILABLE" ? "ERR_CUDA_UNAVAILABLE" : "ERR_NOT_IMPLEMENTED");
  } catch (const c10::Error& error) {
    return describeTorchError(error, nullptr);
  } catch (const std::bad_alloc&) {
    return {"ERR_OUT_OF_MEMORY", "not enough memory"};
  } catch (const std::exception& error) {
    return {codeOfMessage(error.what(), "ERR_NATIVE"), error.what()};
  } catch (...) {
    return {"ERR_NATIVE", "unknown native error"};
  }
}

Napi::Error makeError(Napi::Env env, const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Napi::Error& error) {
    return error;
  } catch (const CallbackFailed&) {
    if (auto* environment = env.GetInstanceData<Environment>()) {
      if (auto error = std::exchange(environment->callbackError, std::nullopt)) return *error;
    }
  } catch (...) {
  }
  const ErrorReport report = describeException(exception);
  const auto* environment = env.GetInstanceData<Environment>();
  if (environment != nullptr && !environment->errorClass.IsEmpty()) {
    const Napi::Object error = environment->errorClass.New(
        {Napi::String::New(env, report.code), Napi::String::New(env, report.message)});
    return Napi::Error(env, error);
  }
  Napi::Error error = Napi::Error::New(env, report.message);
  error.Set("code", report.code);
  return error;
}

}  // namespace torchformer::bind
