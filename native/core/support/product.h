#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

// All matrix products are computed here, with a choice of library and precision.

namespace torchformer::core {

/// How the factors of a product and its result are rounded.
enum class Products : int64_t {
  own,              // not rounded: the tensors' dtype
  bfloat16,         // factors in bfloat16, for float32 tensors; sums and results stay float32
  bfloat16Results,  // factors and results in bfloat16
  float16Results,   // factors and results in float16
};

/// "own", "bfloat16", "bfloat16_results" or "float16_results"; anything else is an ERR_ARGUMENT.
/// `op` is for the message.
Products parseProducts(const char* op, std::string_view name);

/// The result dtype of an op with these products for an input. With half results, a weight may be
/// float32 beside a half input; float64 is unchanged.
at::ScalarType productsResultType(Products products, at::ScalarType input);

/// Checks that `weight` can be multiplied with `input`: of the same dtype, or float32 beside a half
/// type if the products give half results.
void checkWeight(const char* op, const char* name, const at::Tensor& weight, const char* inputName,
                 const at::Tensor& input, Products products);

/// `tensor` in the form that products of this precision require; unchanged for Products::own, and
/// if undefined. Compute it once for several products: it is a pass over the tensor.
at::Tensor operand(const at::Tensor& tensor, Products products);

/// a [n, k] times b [k, m], both operands, in `dtype`.
at::Tensor product(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype);

/// sum = beta * sum + scale * a b, in place, beta 0 or 1.
void addProduct_(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b, double beta,
                 double scale = 1.0);

/// scale * a b + bias [m] in `dtype`; `bias` may be undefined.
at::Tensor biasedProduct(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias,
                         double scale, at::ScalarType dtype);

/// The library for float32 products on this processor, "MKL" or "oneDNN", and the method of
/// bfloat16 products, "bfloat16 instructions" or "rounded float32"; chosen by processor type, so
/// that the same machine always gives the same bits. TORCHFORMER_GEMM=mkl|onednn overrides the
/// first.
struct ProductKernels {
  std::string float32;
  std::string bfloat16;
};
const ProductKernels& productKernels();

}  // namespace torchformer::core
