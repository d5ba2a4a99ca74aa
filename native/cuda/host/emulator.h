#pragma once

#include <cstdint>
#include <cstring>
#include <functional>

// Runs CUDA kernels on the host, for tests: the threads of a block are fibers that switch at
// barriers and shuffles, and blocks run one at a time. Slow, and blind to data races, but exact in
// which thread reads and writes what: AddressSanitizer detects invalid accesses, and a barrier that
// not all threads reach is an error here, too.

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

// CUDA's names for the position of a thread.
extern thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

#define __global__
#define __device__
#define __host__
#define __restrict__ __restrict
// All fibers of a block run on one thread, and only one block runs at a time.
#define __shared__ static thread_local
#define __launch_bounds__(...)

namespace torchformer::cuda::host {

/// Runs `body` for every thread of every block. @throws std::runtime_error for a barrier that some
/// threads of a block or warp never reach
void launch(dim3 grid, dim3 block, const std::function<void()>& body);

/// Waits until all threads of the block have arrived.
void waitForBlock();

/// Gives `bytes` at `value` to the threads of the warp and takes those of lane `from`.
void exchangeInWarp(void* value, std::size_t bytes, int from);

/// The index of this thread in its warp.
int laneOfThread();

struct Bfloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

float toFloat(Bfloat16 value);
float toFloat(Float16 value);
/// Rounds to the nearest, ties to even.
Bfloat16 toBfloat16(float value);
Float16 toFloat16(float value);

template <typename T>
T shuffled(T value, int from) {
  exchangeInWarp(&value, sizeof value, from);
  return value;
}

}  // namespace torchformer::cuda::host

inline void __syncthreads() { torchformer::cuda::host::waitForBlock(); }

template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return torchformer::cuda::host::shuffled(value, torchformer::cuda::host::laneOfThread() ^ mask);
}

template <typename T>
T __shfl_sync(unsigned, T value, int from) {
  return torchformer::cuda::host::shuffled(value, from);
}
