#include "tensor_handle.h"

#include <utility>

#include "environment.h"
#include "errors.h"
#include "js_values.h"

namespace torchformer::bind {
namespace {

void countBytes(Environment& environment, CountedStorage& counted, int64_t bytes) {
  environment.storageBytes += bytes - counted.bytes;
  counted.bytes = bytes;
  if (environment.storageBytes < environment.reportedBytes) reportMemory(environment);
}

// Counts each storage once, for as long as any slot has a tensor of it.
void countStorage(Environment& environment, TensorSlot& slot) {
  // Below this size, counting costs more than it is worth.
  constexpr size_t kSmallest = 4096;
  if (!slot.tensor.has_storage()) return;
  const c10::Storage& storage = slot.tensor.storage();
  if (storage.nbytes() < kSmallest) return;
  const void* address = storage.unsafeGetStorageImpl();
  CountedStorage& counted =
      environment.countedStorages.try_emplace(address, CountedStorage{address}).first->second;
  countBytes(environment, counted, static_cast<int64_t>(storage.nbytes()));
  counted.slots++;
  slot.counted = &counted;
}

void uncountStorage(Environment& environment, TensorSlot& slot) {
  if (slot.counted == nullptr) return;
  CountedStorage& counted = *std::exchange(slot.counted, nullptr);
  if (--counted.slots > 0) return;
  countBytes(environment, counted, 0);
  environment.countedStorages.erase(counted.storage);
}

}  // namespace

int64_t holdTensor(Environment& environment, at::Tensor tensor) {
  const int64_t number = environment.tensors.add(std::move(tensor));
  countStorage(environment, *environment.tensors.find(number));
  return number;
}

void updateStorage(Environment& environment, TensorSlot& slot) {
  uncountStorage(environment, slot);
  countStorage(environment, slot);
  reportMemory(environment);
}

void reportMemory(Environment& environment) {
  const int64_t change = environment.storageBytes - environment.reportedBytes;
  if (change == 0) return;
  environment.reportedBytes = environment.storageBytes;
  Napi::MemoryManagement::AdjustExternalMemory(environment.env, change);
}

void releaseTensor(Environment& environment, int64_t number) {
  TensorSlot* slot = environment.tensors.find(number);
  if (slot == nullptr || slot->isFree()) return;
  uncountStorage(environment, *slot);
  environment.tensors.remove(number);
}

Napi::Value wrapTensor(Environment& environment, at::Tensor tensor) {
  const int64_t number = holdTensor(environment, std::move(tensor));
  try {
    return environment.makeTensor.Call(
        {Napi::Number::New(environment.env, static_cast<double>(number))});
  } catch (...) {
    releaseTensor(environment, number);
    throw;
  }
}

TensorSlot* slotOf(Environment& environment, const Napi::Value& value) {
  // Only the class itself can read its private field. The wrappers of node-addon-api, which open a
  // handle scope, are not used because this is called for every tensor in a list.
  napi_env env = environment.env;
  napi_value argument = value;
  napi_value number = nullptr;
  check(env, napi_call_function(env, environment.env.Undefined(), environment.slotOf.Value(), 1,
                                &argument, &number));
  int64_t slot = -1;
  check(env, napi_get_value_int64(env, number, &slot));
  return environment.tensors.find(slot);
}

const at::Tensor& tensorOf(Environment& environment, const Napi::Value& value, const char* what) {
  const TensorSlot* slot = slotOf(environment, value);
  if (slot == nullptr) {
    throw BridgeError("ERR_ARGUMENT", std::string(what) + " must be a Tensor of this thread, got " +
                                          describeValue(value));
  }
  if (slot->isFree()) {
    throw BridgeError("ERR_DISPOSED", std::string(what) +
                                          " has been disposed of; keep() it or return it from "
                                          "tidy() if it is needed later");
  }
  return slot->tensor;
}

std::vector<at::Tensor> tensorsOf(Environment& environment, const Napi::Value& array,
                                  const char* what, const char* element) {
  std::vector<at::Tensor> tensors;
  for (const Napi::Value& value : arrayOf(array, what)) {
    tensors.push_back(isNullish(value) ? at::Tensor() : tensorOf(environment, value, element));
  }
  return tensors;
}

}  // namespace torchformer::bind
