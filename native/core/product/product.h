#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/product/epilogue.h"
#include "core/product/ways.h"

// All matrix products are computed here, with a choice of precision. Who computes them is a
// question of the processor and the shape: see ways.h.

namespace torchformer::core {

/// How the factors of a product and its result are rounded.
enum class Products : int64_t {
  own,              // not rounded: the tensors' dtype
  ownRows,          // as own; on the CPU the bits of a row do not depend on the other rows
  bfloat16,         // factors in bfloat16, for float32 tensors; sums and results stay float32
  bfloat16Results,  // factors and results in bfloat16
  float16Results,   // factors and results in float16
};

/// Whether tensors are multiplied as they are.
inline bool isUnrounded(Products products) {
  return products == Products::own || products == Products::ownRows;
}

/// "own", "own_rows", "bfloat16", "bfloat16_results" or "float16_results"; anything else is an
/// ERR_ARGUMENT. `op` is for the message.
Products parseProducts(const char* op, std::string_view name);

/// The result dtype of an op with these products for an input. With half results, a weight may be
/// float32 beside a half input; float64 is unchanged.
at::ScalarType productsResultType(Products products, at::ScalarType input);

/// Checks that `weight` can be multiplied with `input`: of the same dtype, or float32 beside a half
/// type if the products give half results.
void checkWeight(const char* op, const char* name, const at::Tensor& weight, const char* inputName,
                 const at::Tensor& input, Products products);

/// `tensor` in the form that products of this precision require; unchanged if these products do not
/// round, and if undefined. Compute it once for several products: it is a pass over the tensor.
at::Tensor operand(const at::Tensor& tensor, Products products);

/// How a product is used.
struct ProductUse {
  /// The weight that the second factor is, or is a view of, if nothing is about to change it: a
  /// product of few rows keeps it packed for the next ones (see keptPanels). Not a view of it that
  /// was made below autograd, which has another version counter. Undefined in training, where every
  /// step changes the weights.
  at::Tensor lasting = {};
  /// On the CPU, the bits of a row of the result depend on that row of a and on b alone: not on the
  /// number of rows, their order or the number of threads.
  bool fixedRows = false;
  /// From packedFactor, of the second factor; may be undefined.
  at::Tensor panels = {};
  /// If absent, it is taken from the order in which the factors are stored.
  std::optional<ProductLayout> layout = {};
};

/// The product of rows with a weight, in a call that is recorded for a backward pass or not.
inline ProductUse forwardUse(Products products, bool recorded, const at::Tensor& weight) {
  return {.lasting = recorded || !isUnrounded(products) ? at::Tensor() : weight,
          .fixedRows = products == Products::ownRows,
          .layout = ProductLayout::forward};
}

/// A product of a backward pass.
inline ProductUse backwardUse(Products products) {
  return {.fixedRows = products == Products::ownRows};
}

/// Whether products with results in `dtype` on the device of `tensor` have all steps of an
/// epilogue: on the CPU in float32 and float64.
bool hasEpilogues(const at::Tensor& tensor, at::ScalarType dtype);

/// a [n, k] times b [k, m], both operands, in `dtype`, and then the epilogue. Steps other than
/// scale and bias are for results that `hasEpilogues`.
at::Tensor product(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype,
                   const Epilogue& epilogue = {}, const ProductUse& use = {});

/// sum = beta * sum + a b, in place, beta 0 or 1.
void addProduct_(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b, double beta,
                 const ProductUse& use = {});

/// The gradients of a linear layer's parameters; undefined if not wanted.
struct LayerGradients {
  at::Tensor weight;  // scale * g^T x [m, k]
  at::Tensor bias;    // the sum of the rows of the upstream gradient [m], not scaled
};
struct LayerGradientsWanted {
  bool weight, bias;
};

/// In `dtype`, from the rows x [n, k] and the upstream gradient `upstream` [n, m]. x and g are
/// operands: g is `upstream` or a rounded form of it. The sum takes no pass of its own where g is
/// packed for the product.
LayerGradients layerGradients(const at::Tensor& upstream, const at::Tensor& g, const at::Tensor& x,
                              at::ScalarType dtype, const LayerGradientsWanted& wanted,
                              double scale = 1.0, const ProductUse& use = {});

/// a b on the CPU by a given way, for tests and benchmarks.
at::Tensor productBy(const NamedWay& way, const at::Tensor& a, const at::Tensor& b);

/// b [k, m] packed for several products over `tokens` rows each, if they are our kernels'; else
/// undefined.
at::Tensor packedFactor(const at::Tensor& b, ProductLayout layout, int64_t tokens);

}  // namespace torchformer::core
