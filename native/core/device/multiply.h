#pragma once

#include <torch/library.h>

namespace torchformer::core {

/// `multiply(a, b, way)`: a [n, k] times b [k, m] on the CPU by "mkl", "onednn", "avx2" or
/// "avx512", or with "" as the ops of this package do.
void defineMultiplyDeviceOp(torch::Library& library);

}  // namespace torchformer::core
