#include "core/support/product.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <cstdlib>
#include <optional>

#include "core/support/check.h"
#include "core/support/optional.h"
#include "core/support/precision.h"

namespace torchformer::core {

namespace {

ProductKernels chooseKernels() {
  ProductKernels kernels{"MKL", "rounded float32"};
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f");
  // On AMD processors with AVX-512, oneDNN is about twice as fast as MKL; on others it is not.
  if (avx512 && __builtin_cpu_is("amd")) kernels.float32 = "oneDNN";
  if (avx512 && __builtin_cpu_supports("avx512bf16")) kernels.bfloat16 = "bfloat16 instructions";
#endif
  if (!at::globalContext().hasMKLDNN()) kernels.float32 = "MKL";
  const char* wish = std::getenv("TORCHFORMER_GEMM");
  if (wish != nullptr) {
    const std::string name(wish);
    const bool hasOneDnn = at::globalContext().hasMKLDNN();
    TF_CHECK(ERR_ARGUMENT, name.empty() || name == "mkl" || (name == "onednn" && hasOneDnn),
             "TORCHFORMER_GEMM must be 'mkl'", hasOneDnn ? " or 'onednn'" : " here", ", got '",
             name, "'; unset it for the choice by kind of processor");
    if (name == "mkl") kernels.float32 = "MKL";
    if (name == "onednn") kernels.float32 = "oneDNN";
  }
  return kernels;
}

bool usesOneDnn(const at::Tensor& a, const at::Tensor& b) {
  static const bool chosen = productKernels().float32 == "oneDNN";
  // One row is a matrix-vector product, and oneDNN rejects empty matrices.
  return chosen && a.is_cpu() && a.scalar_type() == at::kFloat && a.size(0) > 1 && a.size(1) > 0 &&
         b.size(1) > 0;
}

/// a b through the op that PyTorch's compiler uses for linear layers: the only access to oneDNN's
/// float32 products. It takes the second matrix transposed, with any strides.
at::Tensor oneDnnProduct(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias) {
  using Signature = at::Tensor(
      const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, std::string_view,
      c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>);
  static const auto linear = c10::Dispatcher::singleton()
                                 .findSchemaOrThrow("mkldnn::_linear_pointwise", "")
                                 .typed<Signature>();
  const auto optionalBias = optional(bias);
  return linear.call(a, b.t(), optionalBias, "none", c10::List<std::optional<at::Scalar>>(), "");
}

/// The half type that factors are rounded to.
at::ScalarType factorType(Products products) {
  return products == Products::float16Results ? at::kHalf : at::kBFloat16;
}

}  // namespace

const ProductKernels& productKernels() {
  static const ProductKernels kernels = chooseKernels();
  return kernels;
}

Products parseProducts(const char* op, std::string_view name) {
  if (name == "own") return Products::own;
  if (name == "bfloat16") return Products::bfloat16;
  if (name == "bfloat16_results") return Products::bfloat16Results;
  TF_CHECK(ERR_ARGUMENT, name == "float16_results", op,
           ": products must be 'own', 'bfloat16', 'bfloat16_results' or 'float16_results', got '",
           std::string(name), "'");
  return Products::float16Results;
}

at::ScalarType productsResultType(Products products, at::ScalarType input) {
  const bool isHalved =
      products == Products::bfloat16Results || products == Products::float16Results;
  return isHalved && input != at::kDouble ? factorType(products) : input;
}

void checkWeight(const char* op, const char* name, const at::Tensor& weight, const char* inputName,
                 const at::Tensor& input, Products products) {
  const auto type = weight.defined() ? weight.scalar_type() : at::kDouble;
  const bool isMixed = productsResultType(products, at::kFloat) != at::kFloat &&
                       type != at::kDouble && input.scalar_type() != at::kDouble;
  if (isMixed) {
    checkParameter(op, name, weight, inputName, input);
  } else {
    checkMatches(op, name, weight, inputName, input);
  }
}

at::Tensor operand(const at::Tensor& tensor, Products products) {
  if (products == Products::own || !tensor.defined() || tensor.scalar_type() == at::kDouble) {
    return tensor;
  }
  // With products "bfloat16", half tensors are multiplied unchanged.
  if (products == Products::bfloat16 && tensor.scalar_type() != at::kFloat) return tensor;
  const auto narrow = tensor.to(factorType(products));
  if (!tensor.is_cpu()) return narrow;
  // Without bfloat16 instructions, libtorch multiplies bfloat16 ten times slower than float32. A
  // float32 product of rounded numbers has the same factors and sums.
  static const bool isNative = productKernels().bfloat16 == "bfloat16 instructions";
  return isNative && narrow.scalar_type() == at::kBFloat16 ? narrow : narrow.to(at::kFloat);
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype) {
  if (usesOneDnn(a, b)) return oneDnnProduct(a, b, {}).to(dtype);
  // On GPUs the sums are float32 and available without rounding.
  const bool keepsSums = !a.is_cpu() && isHalf(a) && dtype == at::kFloat;
  return keepsSums ? at::mm(a, b, dtype) : at::mm(a, b).to(dtype);
}

void addProduct_(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b, double beta,
                 double scale) {
  if (a.scalar_type() != sum.scalar_type() || usesOneDnn(a, b)) {
    auto found = product(a, b, sum.scalar_type());
    if (beta == 0.0) {
      sum.copy_(found);
      if (scale != 1.0) sum.mul_(scale);
    } else {
      sum.add_(found, scale);
    }
    return;
  }
  if (beta == 0.0 && scale == 1.0) {
    auto out = sum;
    at::mm_out(out, a, b);
  } else {
    sum.addmm_(a, b, beta, scale);
  }
}

at::Tensor biasedProduct(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias,
                         double scale, at::ScalarType dtype) {
  const bool isOneDnn = usesOneDnn(a, b);
  if (isOneDnn && scale == 1.0) return oneDnnProduct(a, b, bias).to(dtype);
  if (isOneDnn || a.scalar_type() != dtype) {
    // Scale and bias before the result is rounded.
    auto result = product(a, b, at::kFloat);
    if (scale != 1.0) result.mul_(scale);
    if (bias.defined()) result.add_(bias);
    return result.to(dtype);
  }
  if (bias.defined()) return at::addmm(bias.to(dtype), a, b, /*beta=*/1, scale);
  if (scale == 1.0) return at::mm(a, b);
  // The scale before any rounding.
  return at::empty({a.size(0), b.size(1)}, a.options()).addmm_(a, b, /*beta=*/0, scale);
}

}  // namespace torchformer::core
