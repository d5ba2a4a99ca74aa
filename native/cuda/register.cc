// Registers our CUDA kernels when the library is loaded. It is loaded after libtorch_cuda and after
// the ops were registered (by the addon, or by libtorchformer_core.so).

#include "core/device/device_op.h"
#include "graph.h"
#include "tensors.h"

namespace {

#if defined(TORCHFORMER_CUDA_EMULATED)
constexpr auto key = c10::DispatchKey::CPU;
#else
constexpr auto key = c10::DispatchKey::CUDA;
#endif

[[maybe_unused]] const torch::Library* const registered = [] {
  // Never destroyed: at process exit other threads may still be inside a kernel.
  auto library = std::make_unique<torch::Library>(
      torch::Library::IMPL, torchformer::core::deviceNamespace, key, __FILE__, __LINE__);
  torchformer::cuda::registerAdamRows(*library);
  torchformer::cuda::registerDropout(*library);
  torchformer::cuda::registerEmbed(*library);
  torchformer::cuda::registerActivationDropout(*library);
  torchformer::cuda::registerLinearCrossEntropy(*library);
  torchformer::cuda::registerNorm(*library);
  return library.release();
}();

#if !defined(TORCHFORMER_CUDA_EMULATED)
[[maybe_unused]] const torch::Library* const graphs = [] {
  auto library = std::make_unique<torch::Library>(torch::Library::DEF, "torchformer_graph",
                                                  std::nullopt, __FILE__, __LINE__);
  torchformer::cuda::defineGraphs(*library);
  return library.release();
}();
#endif

}  // namespace
