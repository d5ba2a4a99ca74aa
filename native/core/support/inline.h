#pragma once

// Functions called by loops over elements, on the CPU and in CUDA kernels.

#if defined(__CUDACC__)
#define TF_INLINE __host__ __device__ __forceinline__
#else
#define TF_INLINE inline __attribute__((always_inline))
#endif
