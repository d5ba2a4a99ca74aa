// GPUs: how many there are or why there are none, their memory, synchronization, TF32. This uses
// only the device-independent functions of libtorch_cpu and c10, so that the addon needs no CUDA
// library; only the name of a GPU comes from the driver itself.
#include "devices.h"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/DynamicLibrary.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <optional>

#include "environment.h"
#include "errors.h"
#include "js_values.h"
#include "worker.h"

namespace torchformer::bind {
namespace {

constexpr auto kCuda = c10::DeviceType::CUDA;

// The error of libtorch when CUDA is initialized; null if this succeeds.
std::optional<std::string> startingFault() {
  try {
    at::globalContext().lazyInitDevice(kCuda);
    return std::nullopt;
  } catch (...) {
    return describeException(std::current_exception()).message;
  }
}

// `opened`: whether the CUDA library is loaded. `problem`: why no GPU can be used although it is.
// libtorch counts GPUs once per process, and only then warns about a driver that is too old;
// initializing CUDA reports it again.
Napi::Value cudaStatus(const Napi::CallbackInfo& info) {
  std::vector<std::string> warnings;
  const WarningCollector collector(warnings);
  const at::CUDAHooksInterface& hooks = at::detail::getCUDAHooks();
  const int devices = hooks.deviceCount();
  std::optional<std::string> problem;
  if (devices == 0 && hooks.hasCUDART()) problem = startingFault();
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("devices", devices);
  result.Set("opened", hooks.hasCUDART());
  result.Set("problem", problem ? Napi::String::New(info.Env(), *problem) : info.Env().Null());
  return result;
}

// The index of an existing GPU, with CUDA initialized.
c10::DeviceIndex deviceOf(const Napi::CallbackInfo& info) {
  const int64_t index = integerOf(info[0], "device");
  const int devices = at::detail::getCUDAHooks().deviceCount();
  if (index < 0 || index >= devices) {
    throw BridgeError("ERR_DEVICE", "there is no GPU " + std::to_string(index) + " among " +
                                        std::to_string(devices));
  }
  at::globalContext().lazyInitDevice(kCuda);
  return static_cast<c10::DeviceIndex>(index);
}

Napi::Value cudaMemory(const Napi::CallbackInfo& info) {
  const c10::DeviceIndex index = deviceOf(info);
  auto* const allocator = at::getDeviceAllocator(kCuda);
  const auto [free, total] = allocator->getMemoryInfo(index);
  const auto stats = allocator->getDeviceStats(index);
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const c10::CachingAllocator::Stat& allocated = stats.allocated_bytes[kAll];
  const c10::CachingAllocator::Stat& reserved = stats.reserved_bytes[kAll];
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("free", static_cast<double>(free));
  result.Set("total", static_cast<double>(total));
  result.Set("allocated", static_cast<double>(allocated.current));
  result.Set("reserved", static_cast<double>(reserved.current));
  result.Set("peakAllocated", static_cast<double>(allocated.peak));
  result.Set("peakReserved", static_cast<double>(reserved.peak));
  return result;
}

Napi::Value cudaResetPeakMemory(const Napi::CallbackInfo& info) {
  const c10::DeviceIndex index = deviceOf(info);
  at::getDeviceAllocator(kCuda)->resetPeakStats(index);
  return info.Env().Undefined();
}

Napi::Value cudaEmptyCache(const Napi::CallbackInfo& info) {
  Environment::of(info.Env()).runNow([] {
    at::globalContext().lazyInitDevice(kCuda);
    at::getDeviceAllocator(kCuda)->emptyCache();
  });
  return info.Env().Undefined();
}

Napi::Value cudaSynchronize(const Napi::CallbackInfo& info) {
  const c10::DeviceIndex index = deviceOf(info);
  Environment::of(info.Env()).runNow([index] { at::accelerator::synchronizeDevice(index); });
  return info.Env().Undefined();
}

Napi::Value cudaSynchronizeAsync(const Napi::CallbackInfo& info) {
  const c10::DeviceIndex index = deviceOf(info);
  Environment& environment = Environment::of(info.Env());
  return environment.asyncWorker().submit({
      [index] { at::accelerator::synchronizeDevice(index); },
      [&environment] { return environment.env.Undefined(); },
  });
}

// Unlike the runtime's structures, the driver's C interface is the same in all versions of CUDA. It
// numbers devices as the runtime does, including CUDA_VISIBLE_DEVICES.
class Driver {
 public:
  explicit Driver(const std::string& library) : library_(library.c_str()) {
    check(function<int (*)(unsigned)>("cuInit")(0), "cuInit");
  }

  int device(int index) {
    int handle = 0;
    check(function<int (*)(int*, int)>("cuDeviceGet")(&handle, index), "cuDeviceGet");
    return handle;
  }

  std::string name(int device) {
    std::array<char, 256> text{};
    const auto get = function<int (*)(char*, int, int)>("cuDeviceGetName");
    check(get(text.data(), static_cast<int>(text.size()) - 1, device), "cuDeviceGetName");
    return text.data();
  }

  int attribute(int device, int attribute) {
    int value = 0;
    const auto get = function<int (*)(int*, int, int)>("cuDeviceGetAttribute");
    check(get(&value, attribute, device), "cuDeviceGetAttribute");
    return value;
  }

 private:
  template <typename Function>
  Function function(const char* name) {
    return reinterpret_cast<Function>(library_.sym(name));
  }

  static void check(int status, const char* function) {
    if (status == 0) return;
    throw BridgeError("ERR_CUDA_UNAVAILABLE", std::string("the NVIDIA driver refuses ") + function +
                                                  " with error " + std::to_string(status));
  }

  at::DynamicLibrary library_;
};

Napi::Value cudaDeviceFacts(const Napi::CallbackInfo& info) {
  const c10::DeviceIndex index = deviceOf(info);
  constexpr int kMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
  constexpr int kMinor = 76;
  Driver driver(stringOf(info[1], "library"));
  const int device = driver.device(index);
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("name", driver.name(device));
  result.Set("major", driver.attribute(device, kMajor));
  result.Set("minor", driver.attribute(device, kMinor));
  return result;
}

Napi::Value setTf32(const Napi::CallbackInfo& info) {
  const bool allowed = boolOf(info[0], "allowed");
  // It warns that this setting is deprecated.
  std::vector<std::string> warnings;
  const WarningCollector collector(warnings);
  at::globalContext().setAllowTF32CuBLAS(allowed);
  return info.Env().Undefined();
}

Napi::Value tf32(const Napi::CallbackInfo& info) {
  std::vector<std::string> warnings;
  const WarningCollector collector(warnings);
  return Napi::Boolean::New(info.Env(), at::globalContext().allowTF32CuBLAS());
}

}  // namespace

void exportDeviceFunctions(Napi::Object exports) {
  exportFunction<cudaStatus>(exports, "cudaStatus");
  exportFunction<cudaMemory>(exports, "cudaMemory");
  exportFunction<cudaResetPeakMemory>(exports, "cudaResetPeakMemory");
  exportFunction<cudaEmptyCache>(exports, "cudaEmptyCache");
  exportFunction<cudaSynchronize>(exports, "cudaSynchronize");
  exportFunction<cudaSynchronizeAsync>(exports, "cudaSynchronizeAsync");
  exportFunction<cudaDeviceFacts>(exports, "cudaDeviceFacts");
  exportFunction<setTf32>(exports, "setTf32");
  exportFunction<tf32>(exports, "tf32");
}

}  // namespace torchformer::bind
