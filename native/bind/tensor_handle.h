// The tie between one JS Tensor object and one at::Tensor.
#pragma once

#include <ATen/core/Tensor.h>
#include <napi.h>

namespace torchformer::bind {

struct Environment;

struct TensorHandle {
  Environment* environment;
  at::Tensor tensor;
  bool disposed = false;
  // What the collector was told about memory outside its heap, and for which storage.
  int64_t reportedBytes = 0;
  const void* reportedStorage = nullptr;
  // The JS object that `grad` has given last, weakly: the same gradient is the same object.
  c10::TensorImpl* gradientImpl = nullptr;
  Napi::ObjectReference gradientObject;
};

// A new JS Tensor around `tensor` (which is defined).
Napi::Value wrapTensor(Environment& environment, at::Tensor tensor);

// Null if `value` is no Tensor of this environment.
TensorHandle* handleOf(const Environment& environment, const Napi::Value& value);

// The tensor behind `value`; BridgeError ERR_DISPOSED or ERR_ARGUMENT naming `what`.
const at::Tensor& tensorOf(const Environment& environment, const Napi::Value& value,
                           const char* what);

// Frees the native tensor now. Harmless when repeated.
void disposeHandle(TensorHandle& handle);

// Adds the functions on tensors to the addon's exports.
void exportTensorFunctions(Napi::Object exports);

}  // namespace torchformer::bind
