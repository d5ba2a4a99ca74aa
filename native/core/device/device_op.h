#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/TensorOptions.h>
#include <torch/library.h>

#include <string>

// The device-specific part of an op. Each is an op of the dispatcher in a separate namespace:
// kernels for the CPU and for meta tensors (shapes only) are registered here in core, those for
// CUDA by native/cuda when its library is loaded. Everything else (checks, options, autograd, the
// readable reference) is the same for all devices and is in the op's own file. Device ops check
// nothing and have no gradient.

namespace torchformer::core {

constexpr const char* deviceNamespace = "torchformer_device";

template <typename Signature>
class DeviceOp;

template <typename Result, typename... Arguments>
class DeviceOp<Result(Arguments...)> {
 public:
  /// `name` as registered; the op must already be registered.
  explicit DeviceOp(const char* name)
      : handle_(c10::Dispatcher::singleton().findSchemaOrThrow(
            (std::string(deviceNamespace) + "::" + name).c_str(), "")),
        typed_(handle_.typed<Result(Arguments...)>()) {}

  Result operator()(Arguments... arguments) const {
    return typed_.call(std::forward<Arguments>(arguments)...);
  }

  /// Whether the device of `tensor` has a kernel: not on a GPU unless native/cuda is loaded.
  bool isFor(const at::Tensor& tensor) const {
    const auto key = c10::computeDispatchKey(std::nullopt, std::nullopt, tensor.device());
    return handle_.hasKernelForDispatchKey(key);
  }

 private:
  c10::OperatorHandle handle_;
  c10::TypedOperatorHandle<Result(Arguments...)> typed_;
};

/// Registers the schema of a device op with its kernels for the CPU and for meta tensors.
template <typename Cpu, typename Meta>
void defineDeviceOp(torch::Library& library, const std::string& schema, Cpu&& cpu, Meta&& meta) {
  const auto name = schema.substr(0, schema.find('('));
  library.def(schema.c_str());
  library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::CPU, std::forward<Cpu>(cpu)));
  library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::Meta, std::forward<Meta>(meta)));
}

}  // namespace torchformer::core
