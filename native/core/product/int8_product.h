#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "core/product/int8_kernel.h"

// Products with 8-bit weights: activations are rounded to 8 bits too, each row with a scale of its
// own, so that the products are exact sums of whole numbers.

namespace torchformer::core {

/// The kernel for this processor; null if it has none of the sets of instructions.
const Int8Kernel* int8Kernel();

/// The kernel "avx2" or "vnni". @throws ERR_ARGUMENT for another, and for what this processor lacks
const Int8Kernel* int8KernelNamed(const char* op, std::string_view name);

/// A weight [out, in], packed.
struct Int8Weight {
  int64_t out = 0;
  int64_t in = 0;
  at::Tensor panels;  // bytes
  at::Tensor scale;   // [out]
};

/// `weight`: float32 on the CPU.
Int8Weight packInt8(const Int8Kernel& kernel, const at::Tensor& weight);

/// y [rows, out] = x [rows, in] W^T, and what `finish` says; its scale is the weight's. The bits of
/// a row depend on that row and the kernel alone.
void multiplyInt8(const Int8Kernel& kernel, const Int8Weight& weight, const float* x, int64_t rows,
                  float* y, int64_t yStride, const float* bias, bool relu, bool adds);

}  // namespace torchformer::core
