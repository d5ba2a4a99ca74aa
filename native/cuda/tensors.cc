#include "tensors.h"

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "core/support/check.h"

namespace torchformer::cuda {

Element elementOf(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return Element::float32;
    case at::kDouble:
      return Element::float64;
    case at::kBFloat16:
      return Element::bfloat16;
    default:
      TF_CHECK(ERR_DTYPE, dtype == at::kHalf,
               "a CUDA kernel takes float16, bfloat16, float32 or float64, got ", dtype);
      return Element::float16;
  }
}

void* currentStream(const at::Device& device) {
  if (device.is_cpu()) return nullptr;
  // Through the device-generic interface, so that libtorch_cuda need not be linked.
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
}

void check(const char* op, LaunchError error) {
  TF_CHECK(ERR_CUDA, error == nullptr, op, ": the CUDA kernel was not launched: ", error);
}

RowSizes rowSizes(const at::Tensor& tensor) {
  if (tensor.dim() == 0) return {1, 1};
  const auto columns = tensor.size(-1);
  return {columns == 0 ? 0 : tensor.numel() / columns, columns};
}

Dropping droppingOf(double p, int64_t seed, const std::optional<at::Tensor>& slot) {
  return Dropping::of(p, {static_cast<uint64_t>(seed),
                          slot.has_value() ? slot->const_data_ptr<int64_t>() : nullptr});
}

}  // namespace torchformer::cuda
