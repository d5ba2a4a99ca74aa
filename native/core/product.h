#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

// The one place where matrix products are computed: which library multiplies, and in which
// precision.

namespace torchformer::core {

/// What the numbers of a product are rounded to before it.
enum class Products : int64_t {
  own,       // nothing: the tensors' own dtype
  bfloat16,  // bfloat16, for float32 tensors on the CPU; sums stay float32
};

/// "own" or "bfloat16"; anything else is an ERR_ARGUMENT. `op` is for the message.
Products parseProducts(const char* op, std::string_view name);

/// `tensor` in the form that products of this precision take; itself for Products::own, and when
/// undefined. Make it once for several products: it is a pass over the tensor.
at::Tensor operand(const at::Tensor& tensor, Products products);

/// a [n, k] times b [k, m], both operands, in `dtype`, the dtype of the tensors they were made of.
at::Tensor product(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype);

/// sum = beta * sum + scale * a b, in place, beta 0 or 1.
void addProduct_(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b, double beta,
                 double scale = 1.0);

/// scale * a b + bias [m]; an undefined bias is none.
at::Tensor biasedProduct(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias,
                         double scale, at::ScalarType dtype);

/// The library for float32 products on this processor, "MKL" or "oneDNN", and how bfloat16 ones are
/// done, "bfloat16 instructions" or "rounded float32"; chosen by processor kind, so that the same
/// machine always gives the same bits. TORCHFORMER_GEMM=mkl|onednn overrides the first.
struct ProductKernels {
  std::string float32;
  std::string bfloat16;
};
const ProductKernels& productKernels();

}  // namespace torchformer::core
