#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "core/support/optional.h"
#include "core/support/precision.h"
#include "dropout_in_kernels.h"
#include "element.h"

// From tensors to what launchers take.

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

/// @throws ERR_DTYPE for other dtypes than the four floating ones
Element elementOf(at::ScalarType dtype);

/// The stream that work for this device belongs on, as cudaStream_t.
void* currentStream(const at::Device& device);

/// @throws ERR_CUDA naming the op when a launch was refused
void check(const char* op, LaunchError error);

/// [..., D] as dense rows.
struct RowSizes {
  int64_t rows;
  int64_t columns;
};
RowSizes rowSizes(const at::Tensor& tensor);

/// `tensor` as the dense rows that kernels take; a copy only where it is not.
inline at::Tensor dense(const at::Tensor& tensor) { return tensor.contiguous(); }

inline const void* dataOf(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

inline void* mutableDataOf(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr() : nullptr;
}

Dropping droppingOf(double p, int64_t seed, const OptionalTensor& slot);

}  // namespace torchformer::cuda
