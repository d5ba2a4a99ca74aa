#include "tensor_handle.h"

#include "environment.h"
#include "errors.h"
#include "js_values.h"

namespace torchformer::bind {
namespace {

// Tells the collector of memory that it cannot see, a storage once. Without that it would take a
// handle of some hundred bytes for all there is to free.
void reportStorage(TensorHandle& handle) {
  // Below this size a report costs more than it tells.
  constexpr size_t kSmallest = 4096;
  Environment& environment = *handle.environment;
  if (!handle.tensor.has_storage()) return;
  const c10::Storage& storage = handle.tensor.storage();
  if (storage.nbytes() < kSmallest) return;
  if (!environment.reportedStorages.insert(storage.unsafeGetStorageImpl()).second) return;
  handle.reportedStorage = storage.unsafeGetStorageImpl();
  handle.reportedBytes = static_cast<int64_t>(storage.nbytes());
  Napi::MemoryManagement::AdjustExternalMemory(environment.env, handle.reportedBytes);
}

void withdrawReport(TensorHandle& handle) {
  if (handle.reportedStorage == nullptr) return;
  handle.environment->reportedStorages.erase(handle.reportedStorage);
  handle.reportedStorage = nullptr;
  Napi::MemoryManagement::AdjustExternalMemory(handle.environment->env, -handle.reportedBytes);
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
  reportStorage(owned);
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
  withdrawReport(handle);
}

}  // namespace torchformer::bind
