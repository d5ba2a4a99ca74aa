#pragma once

#include <cstdint>

// The platform of the kernels. The same files are compiled twice: by nvcc for GPUs, and by the C++
// compiler for host/emulator.h, which runs the threads of a block one at a time, so that every line
// of a kernel can be tested on a machine without a GPU.

#if defined(__CUDACC__)

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define TF_DEVICE __device__ __forceinline__
/// For functions that host code calls too, such as those for sizes.
#define TF_EVERYWHERE __host__ __device__ __forceinline__
#define TF_LAUNCH(kernel, grid, block, stream, ...) \
  kernel<<<(grid), (block), 0, static_cast<cudaStream_t>(stream)>>>(__VA_ARGS__)

namespace torchformer::cuda {

using Bfloat16 = __nv_bfloat16;
using Float16 = __half;

/// Why the last launch failed, or null if it did not.
inline const char* launchError() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace torchformer::cuda

#else

#include "host/emulator.h"

#define TF_DEVICE inline
#define TF_EVERYWHERE inline
#define TF_LAUNCH(kernel, grid, block, stream, ...)                                     \
  do {                                                                                  \
    (void)(stream);                                                                     \
    ::torchformer::cuda::host::launch((grid), (block), [&] { (kernel)(__VA_ARGS__); }); \
  } while (false)

namespace torchformer::cuda {

using Bfloat16 = host::Bfloat16;
using Float16 = host::Float16;

inline const char* launchError() { return nullptr; }

}  // namespace torchformer::cuda

#endif

namespace torchformer::cuda {

/// The result of every launcher: null, or why the launch failed.
using LaunchError = const char*;

constexpr int warpSize_ = 32;

}  // namespace torchformer::cuda
