#include "memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <malloc.h>

#include <atomic>
#include <mutex>
#include <unordered_set>

#include "environment.h"
#include "errors.h"
#include "tensor_handle.h"

namespace torchformer::bind {
namespace {

std::atomic<int64_t> nativeBytes{0};

// JS handles do not show what the autograd graph saves for the backward pass, but libtorch's
// allocations do. This only counts; libtorch's own allocator does the work.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    void* data = c10::alloc_cpu(size);
    nativeBytes += static_cast<int64_t>(malloc_usable_size(data));
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }

  void copy_data(void* destination, const void* source, size_t size) const override {
    default_copy_data(destination, source, size);
  }

 private:
  static void release(void* data) {
    if (data == nullptr) return;
    nativeBytes -= static_cast<int64_t>(malloc_usable_size(data));
    c10::free_cpu(data);
  }
};

Napi::Value memory(const Napi::CallbackInfo& info) {
  const Environment& environment = Environment::of(info.Env());
  std::unordered_set<const void*> storages;
  int64_t bytes = 0;
  for (const TensorSlot& slot : environment.tensors.slots()) {
    if (slot.isFree() || !slot.tensor.has_storage()) continue;
    const c10::Storage& storage = slot.tensor.storage();
    if (storages.insert(storage.unsafeGetStorageImpl()).second) {
      bytes += static_cast<int64_t>(storage.nbytes());
    }
  }
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("tensors", static_cast<double>(environment.tensors.live()));
  result.Set("bytes", static_cast<double>(bytes));
  result.Set("nativeBytes", static_cast<double>(nativeBytes.load()));
  return result;
}

Napi::Value reportedBytes(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(),
                           static_cast<double>(Environment::of(info.Env()).reportedBytes));
}

Napi::Value reportTensors(const Napi::CallbackInfo& info) {
  reportMemory(Environment::of(info.Env()));
  return info.Env().Undefined();
}

}  // namespace

void countNativeBytes() {
  static std::once_flag once;
  // libtorch's default allocator has priority 0; the allocator must outlive every tensor.
  std::call_once(once, [] {
    static CountingAllocator& allocator = *std::make_unique<CountingAllocator>().release();
    c10::SetCPUAllocator(&allocator, 1);
  });
}

void exportMemoryFunctions(Napi::Object exports) {
  exportFunction<memory>(exports, "memory");
  exportFunction<reportTensors>(exports, "reportMemory");
  exportFunction<reportedBytes>(exports, "reportedBytes");
}

}  // namespace torchformer::bind
