#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "core/support/optional.h"
#include "core/support/precision.h"
#include "dropout_in_kernels.h"
#include "element.h"

// Converts tensors to the arguments of launchers.

namespace torchformer::cuda {

using core::OptionalTensor;

/// Registers kernels of the device ops (core/device/device_op.h): for CUDA, or in the emulated
/// build for the CPU in place of the usual ones.
void registerAdamRows(torch::Library& library);
void registerDropout(torch::Library& library);
void registerEmbed(torch::Library& library);
void registerActivationDropout(torch::Library& library);
void registerLinearCrossEntropy(torch::Library& library);
void registerNorm(torch::Library& library);

/// @throws ERR_DTYPE for dtypes other than the four floating-point types
Element elementOf(at::ScalarType dtype);

/// The current stream of this device, as cudaStream_t.
void* currentStream(const at::Device& device);

/// @throws ERR_CUDA with the name of the op if a launch failed
void check(const char* op, LaunchError error);

/// [..., D] as dense rows.
struct RowSizes {
  int64_t rows;
  int64_t columns;
};
RowSizes rowSizes(const at::Tensor& tensor);

/// `tensor` as dense rows for kernels; a copy only if it is not dense.
inline at::Tensor dense(const at::Tensor& tensor) { return tensor.contiguous(); }

inline const void* dataOf(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

inline void* mutableDataOf(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr() : nullptr;
}

Dropping droppingOf(double p, int64_t seed, const OptionalTensor& slot);

}  // namespace torchformer::cuda
