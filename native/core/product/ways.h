#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/product/tile_kernel.h"

// The fastest way of computing a product, by kind of processor and by shape.
//
// The choice is a table in ways.cc, not a measurement on the user's machine, so that the same
// program on the same kind of processor always gives the same bits. `npm run bench -- products`
// measures all ways and prints the table of the processor it runs on.

namespace torchformer::core {

/// What multiplies matrices on the CPU.
enum class Way { own, mkl, oneDnn };

/// A way by its name in TORCHFORMER_GEMM, and the kernels of `own`; null for libraries.
struct NamedWay {
  Way way;
  const TileKernel<float>* floatKernel = nullptr;
  const TileKernel<double>* doubleKernel = nullptr;
};

/// @throws ERR_ARGUMENT for another name than "mkl", "onednn", "avx2" and "avx512", and for what
/// this machine lacks. `owner` is for the message.
NamedWay parseWay(const char* owner, std::string_view name);

/// The three products of a linear layer with rows x, weight W and upstream gradient g.
enum class ProductLayout {
  forward,         // x W^T
  inputGradient,   // g W, and any other product of matrices
  weightGradient,  // g^T x
};

/// Numbers of tokens with a way of their own: fewer than the first of these, than the second, ...
inline constexpr std::array<int64_t, 4> tokenClasses = {4, 16, 64, 256};

/// For people.
struct ProductWays {
  std::string float32;   // "own AVX-512 kernel; gradients of fewer than 64 rows by MKL", ...
  std::string bfloat16;  // "bfloat16 instructions" or "rounded float32"
};

/// The ways that products take on this processor. TORCHFORMER_GEMM=mkl|onednn|avx2|avx512 names one
/// for all shapes.
/// @throws ERR_ARGUMENT for another name, and for instructions that the processor lacks
const ProductWays& productWays();

/// Whether TORCHFORMER_GEMM names a library: then our kernels compute only what needs them.
bool isLibraryForced();

/// The way of a float32 or float64 product over `tokens` rows of activations.
Way wayOf(ProductLayout layout, int64_t tokens, bool isDouble);

}  // namespace torchformer::core
