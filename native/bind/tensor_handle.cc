#include "tensor_handle.h"

#include "environment.h"
#include "errors.h"
#include "js_values.h"

namespace torchformer::bind {
namespace {

// Views share another tensor's memory: only the first holder of a storage reports it.
int64_t ownedBytes(const at::Tensor& tensor) {
  if (!tensor.has_storage() || tensor.storage().use_count() != 1) return 0;
  return static_cast<int64_t>(tensor.storage().nbytes());
}

void reportBytes(TensorHandle& handle, int64_t bytes) {
  // Below this size a report costs more than it tells.
  constexpr int64_t kSmallest = 4096;
  const int64_t reported = bytes < kSmallest ? 0 : bytes;
  if (reported == handle.reportedBytes) return;
  Napi::MemoryManagement::AdjustExternalMemory(handle.environment->env,
                                               reported - handle.reportedBytes);
  handle.reportedBytes = reported;
}

void finalizeHandle(napi_env, void* data, void*) {
  auto* handle = static_cast<TensorHandle*>(data);
  disposeHandle(*handle);
  Environment* environment = handle->environment;
  environment->forget(handle);
  delete handle;
}

}  // namespace

Napi::Value wrapTensor(Environment& environment, at::Tensor tensor) {
  const Napi::Object object = environment.tensorClass.New({});
  auto handle = std::make_unique<TensorHandle>();
  handle->environment = &environment;
  handle->tensor = std::move(tensor);
  // Not Napi::ObjectWrap: the class is TypeScript's, native code only adds the tensor to it.
  check(environment.env,
        napi_wrap(environment.env, object, handle.get(), finalizeHandle, nullptr, nullptr));
  TensorHandle& owned = *handle.release();
  environment.handles.insert(&owned);
  environment.liveTensors++;
  reportBytes(owned, ownedBytes(owned.tensor));
  return object;
}

TensorHandle* handleOf(const Environment& environment, const Napi::Value& value) {
  void* data = nullptr;
  if (napi_unwrap(environment.env, value, &data) != napi_ok) return nullptr;
  auto* handle = static_cast<TensorHandle*>(data);
  return environment.handles.count(handle) == 0 ? nullptr : handle;
}

const at::Tensor& tensorOf(const Environment& environment, const Napi::Value& value,
                           const char* what) {
  TensorHandle* handle = handleOf(environment, value);
  if (handle == nullptr) {
    throw BridgeError("ERR_ARGUMENT", std::string(what) + " must be a Tensor of this thread, got " +
                                          describeValue(value));
  }
  if (handle->disposed) {
    throw BridgeError("ERR_DISPOSED", std::string(what) +
                                          " has been disposed of; keep() it or return it from "
                                          "tidy() if it is needed later");
  }
  return handle->tensor;
}

void disposeHandle(TensorHandle& handle) {
  if (handle.disposed) return;
  handle.disposed = true;
  handle.tensor.reset();
  handle.environment->liveTensors--;
  reportBytes(handle, 0);
}

}  // namespace torchformer::bind
