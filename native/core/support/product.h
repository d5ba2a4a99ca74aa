#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

// The one place where matrix products are computed: which library multiplies, and in which
// precision.

namespace torchformer::core {

/// What the numbers of a product are rounded to before it, and its result after it.
enum class Products : int64_t {
  own,              // nothing: the tensors' own dtype
  bfloat16,         // factors in bfloat16, for float32 tensors; sums and results stay float32
  bfloat16Results,  // factors and results in bfloat16
  float16Results,   // factors and results in float16
};

/// "own", "bfloat16", "bfloat16_results" or "float16_results"; anything else is an ERR_ARGUMENT.
/// `op` is for the message.
Products parseProducts(const char* op, std::string_view name);

/// The dtype of what an op with these products gives for an input. With half results a weight may
/// be float32 beside a half input; float64 stays what it is.
at::ScalarType productsResultType(Products products, at::ScalarType input);

/// Checks that `weight` can be multiplied with `input`: of the same dtype, or float32 beside a half
/// type where the products give half results.
void checkWeight(const char* op, const char* name, const at::Tensor& weight, const char* inputName,
                 const at::Tensor& input, Products products);

/// `tensor` in the form that products of this precision take; itself for Products::own, and when
/// undefined. Make it once for several products: it is a pass over the tensor.
at::Tensor operand(const at::Tensor& tensor, Products products);

/// a [n, k] times b [k, m], both operands, in `dtype`.
at::Tensor product(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype);

/// sum = beta * sum + scale * a b, in place, beta 0 or 1.
void addProduct_(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b, double beta,
                 double scale = 1.0);

/// scale * a b + bias [m] in `dtype`; an undefined bias is none.
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
