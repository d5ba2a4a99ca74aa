#include "core/product/product.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <optional>
#include <string>

#include "core/product/kept_panels.h"
#include "core/product/tiled_product.h"
#include "core/product/ways.h"
#include "core/support/check.h"
#include "core/support/precision.h"

namespace torchformer::core {

namespace {

/// a b through the op that PyTorch's compiler uses for linear layers: the only access to oneDNN's
/// float32 products. It takes the second matrix transposed, with any strides.
at::Tensor oneDnnProduct(const at::Tensor& a, const at::Tensor& b) {
  using Signature = at::Tensor(
      const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, std::string_view,
      c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>);
  static const auto linear = c10::Dispatcher::singleton()
                                 .findSchemaOrThrow("mkldnn::_linear_pointwise", "")
                                 .typed<Signature>();
  return linear.call(a, b.t(), {}, "none", c10::List<std::optional<at::Scalar>>(), "");
}

/// a b in `dtype` by libtorch: the reference, and the only way for half types and on GPUs.
at::Tensor libraryProduct(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype) {
  // On GPUs the sums are float32 and available without rounding.
  const bool keepsSums = !a.is_cpu() && isHalf(a) && dtype == at::kFloat;
  return keepsSums ? at::mm(a, b, dtype) : at::mm(a, b).to(dtype);
}

/// Whether our kernels, and epilogues, are for these factors.
bool isForOwnKernels(const at::Tensor& a, const at::Tensor& b) {
  const auto dtype = a.scalar_type();
  return (dtype == at::kFloat || dtype == at::kDouble) && b.scalar_type() == dtype && a.is_cpu() &&
         b.is_cpu() && a.layout() == at::kStrided && b.layout() == at::kStrided && !a.is_neg() &&
         !b.is_neg();
}

/// Which product of a linear layer a b is, from the order in which its factors are stored.
ProductLayout layoutOf(const at::Tensor& a, const at::Tensor& b) {
  if (a.stride(0) == 1 && a.stride(1) != 1) return ProductLayout::weightGradient;
  return b.stride(0) == 1 && b.stride(1) != 1 ? ProductLayout::forward
                                              : ProductLayout::inputGradient;
}

template <typename T>
Strided<T> strided(const at::Tensor& matrix) {
  return {matrix.const_data_ptr<T>(), matrix.stride(0), matrix.stride(1)};
}

/// Products of fewer rows than this keep a lasting factor packed. For more, packing it again costs
/// a few per cent of the product, and a copy of each weight would cost memory.
constexpr int64_t rowsForKeptPanels = 256;

template <typename T>
void multiplyOwn(const TileKernel<T>& kernel, const at::Tensor& result, const at::Tensor& a,
                 const at::Tensor& b, bool accumulates, const Epilogue& epilogue,
                 const at::Tensor& panels, const at::Tensor& rowSums) {
  TiledProduct<T> tiled{a.size(0), a.size(1), b.size(1), strided<T>(a), strided<T>(b)};
  tiled.packedB = panels.defined() ? panels.const_data_ptr<T>() : nullptr;
  tiled.c = result.mutable_data_ptr<T>();
  tiled.cStride = result.stride(0);
  tiled.accumulates = accumulates;
  if (rowSums.defined()) tiled.rowSums = rowSums.mutable_data_ptr<T>();
  if (epilogue.isEmpty()) {
    multiplyTiled(kernel, tiled);
    return;
  }
  const EpilogueSteps<T> steps(epilogue);
  const Finish<T> finish = steps;
  tiled.finish = &finish;
  multiplyTiled(kernel, tiled);
}

/// Row by row, because the bits of libtorch's products depend on the number of rows.
void multiplyRowByRow(const at::Tensor& result, const at::Tensor& a, const at::Tensor& b,
                      bool accumulates) {
  for (int64_t row = 0; row < a.size(0); ++row) {
    result.narrow(0, row, 1).addmm_(a.narrow(0, row, 1), b, accumulates ? 1.0 : 0.0, 1.0);
  }
}

/// Number of columns that MKL is given at a time. With 1024, it is 50% faster than with all columns
/// of a vocabulary of 150,000, for the same bits.
constexpr int64_t mklColumns = 1024;

void multiplyByMkl(const at::Tensor& result, const at::Tensor& a, const at::Tensor& b,
                   bool accumulates, ProductLayout layout) {
  const auto columns = b.size(1);
  const auto step = layout == ProductLayout::forward ? mklColumns : std::max<int64_t>(columns, 1);
  for (int64_t first = 0; first < columns; first += step) {
    const auto count = std::min(step, columns - first);
    result.narrow(1, first, count)
        .addmm_(a, b.narrow(1, first, count), /*beta=*/accumulates ? 1.0 : 0.0, /*alpha=*/1.0);
  }
}

/// result (+)= a b for float32 and float64, and then the epilogue. `rowSums` [n] becomes the sums
/// of the rows of a, unless it is undefined.
void multiplyOnCpu(const at::Tensor& result, const at::Tensor& a, const at::Tensor& b,
                   bool accumulates, const Epilogue& epilogue, const ProductUse& use,
                   const at::Tensor& rowSums = {}) {
  const bool isDouble = a.scalar_type() == at::kDouble;
  const bool hasKernel =
      isDouble ? tileKernel<double>() != nullptr : tileKernel<float>() != nullptr;
  const auto layout = use.layout.value_or(layoutOf(a, b));
  const auto tokens = layout == ProductLayout::weightGradient ? a.size(1) : a.size(0);
  const auto way = wayOf(layout, tokens, isDouble);
  auto panels = use.panels;
  if (use.lasting.defined() && tokens < rowsForKeptPanels &&
      (use.fixedRows || !isLibraryForced())) {
    panels = keptPanels(b, use.lasting);
  }
  // A product of no columns is empty, but the sums are not.
  const bool isEmpty = b.size(1) == 0;
  if (hasKernel && !isEmpty && (use.fixedRows || panels.defined() || way == Way::own)) {
    if (isDouble) {
      multiplyOwn(*tileKernel<double>(), result, a, b, accumulates, epilogue, panels, rowSums);
    } else {
      multiplyOwn(*tileKernel<float>(), result, a, b, accumulates, epilogue, panels, rowSums);
    }
    return;
  }
  if (rowSums.defined()) {
    auto sums = rowSums;
    at::sum_out(sums, a, {1});
  }
  // One row is a matrix-vector product, and oneDNN rejects empty matrices.
  const bool isForOneDnn = a.size(0) > 1 && a.size(1) > 0 && b.size(1) > 0;
  if (use.fixedRows) {
    multiplyRowByRow(result, a, b, accumulates);
  } else if (way == Way::oneDnn && isForOneDnn) {
    const auto found = oneDnnProduct(a, b);
    if (accumulates) {
      result.add_(found);
    } else {
      result.copy_(found);
    }
  } else {
    multiplyByMkl(result, a, b, accumulates, layout);
  }
  finish_(result, epilogue);
}

/// The half type that factors are rounded to.
at::ScalarType factorType(Products products) {
  return products == Products::float16Results ? at::kHalf : at::kBFloat16;
}

}  // namespace

Products parseProducts(const char* op, std::string_view name) {
  if (name == "own") return Products::own;
  if (name == "own_rows") return Products::ownRows;
  if (name == "bfloat16") return Products::bfloat16;
  if (name == "bfloat16_results") return Products::bfloat16Results;
  TF_CHECK(
      ERR_ARGUMENT, name == "float16_results", op,
      ": products must be 'own', 'own_rows', 'bfloat16', 'bfloat16_results' or 'float16_results', "
      "got '",
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
  if (isUnrounded(products) || !tensor.defined() || tensor.scalar_type() == at::kDouble) {
    return tensor;
  }
  // With products "bfloat16", half tensors are multiplied unchanged.
  if (products == Products::bfloat16 && tensor.scalar_type() != at::kFloat) return tensor;
  const auto narrow = tensor.to(factorType(products));
  if (!tensor.is_cpu()) return narrow;
  // Without bfloat16 instructions, libtorch multiplies bfloat16 ten times slower than float32. A
  // float32 product of rounded numbers has the same factors and sums.
  static const bool isNative = productWays().bfloat16 == "bfloat16 instructions";
  return isNative && narrow.scalar_type() == at::kBFloat16 ? narrow : narrow.to(at::kFloat);
}

bool hasEpilogues(const at::Tensor& tensor, at::ScalarType dtype) {
  return tensor.is_cpu() && (dtype == at::kFloat || dtype == at::kDouble);
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype,
                   const Epilogue& epilogue, const ProductUse& use) {
  if (hasEpilogues(a, dtype)) {
    if (!isForOwnKernels(a, b)) {
      const auto result = libraryProduct(a, b, dtype);
      finish_(result, epilogue);
      return result;
    }
    const auto result = at::empty({a.size(0), b.size(1)}, a.options());
    multiplyOnCpu(result, a, b, /*accumulates=*/false, epilogue, use);
    return result.to(dtype);
  }
  const bool finishesLater = epilogue.scale != 1.0 || epilogue.bias.defined();
  // Scale and bias before the result is rounded.
  if (finishesLater && a.scalar_type() != dtype) {
    auto result = libraryProduct(a, b, at::kFloat);
    if (epilogue.scale != 1.0) result.mul_(epilogue.scale);
    if (epilogue.bias.defined()) result.add_(epilogue.bias);
    return result.to(dtype);
  }
  if (epilogue.bias.defined()) {
    return at::addmm(epilogue.bias.to(dtype), a, b, /*beta=*/1, epilogue.scale);
  }
  if (epilogue.scale == 1.0) return libraryProduct(a, b, dtype);
  return at::empty({a.size(0), b.size(1)}, a.options()).addmm_(a, b, /*beta=*/0, epilogue.scale);
}

LayerGradients layerGradients(const at::Tensor& upstream, const at::Tensor& g, const at::Tensor& x,
                              at::ScalarType dtype, const LayerGradientsWanted& wanted,
                              double scale, const ProductUse& use) {
  LayerGradients result;
  const bool sumsInProduct = wanted.weight && wanted.bias && g.is_same(upstream) &&
                             g.scalar_type() == dtype && isForOwnKernels(g, x);
  if (sumsInProduct) {
    result.weight = at::empty({g.size(1), x.size(1)}, x.options());
    result.bias = at::empty({g.size(1)}, x.options());
    multiplyOnCpu(result.weight, g.t(), x, /*accumulates=*/false, {.scale = scale}, use,
                  result.bias);
    return result;
  }
  if (wanted.weight) result.weight = product(g.t(), x, dtype, {.scale = scale}, use);
  if (wanted.bias) result.bias = upstream.sum({0}, /*keepdim=*/false, dtype);
  return result;
}

at::Tensor productBy(const NamedWay& way, const at::Tensor& a, const at::Tensor& b) {
  if (!isForOwnKernels(a, b)) return libraryProduct(a, b, a.scalar_type());
  const auto result = at::empty({a.size(0), b.size(1)}, a.options());
  if (way.way == Way::mkl) {
    multiplyByMkl(result, a, b, /*accumulates=*/false, layoutOf(a, b));
  } else if (way.way == Way::oneDnn && a.scalar_type() == at::kFloat && a.numel() > 0 &&
             b.size(1) > 0) {
    return oneDnnProduct(a, b);
  } else if (way.way == Way::oneDnn) {
    return at::mm(a, b);
  } else if (a.scalar_type() == at::kDouble) {
    multiplyOwn(*way.doubleKernel, result, a, b, /*accumulates=*/false, {}, {}, {});
  } else {
    multiplyOwn(*way.floatKernel, result, a, b, /*accumulates=*/false, {}, {}, {});
  }
  return result;
}

at::Tensor packedFactor(const at::Tensor& b, ProductLayout layout, int64_t tokens) {
  const bool isOwn =
      isForOwnKernels(b, b) && wayOf(layout, tokens, b.scalar_type() == at::kDouble) == Way::own;
  return isOwn ? packedPanels(b) : at::Tensor();
}

void addProduct_(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b, double beta,
                 const ProductUse& use) {
  if (isForOwnKernels(a, b) && a.scalar_type() == sum.scalar_type() && sum.stride(1) == 1) {
    multiplyOnCpu(sum, a, b, /*accumulates=*/beta != 0.0, {}, use);
  } else if (a.scalar_type() == sum.scalar_type()) {
    sum.addmm_(a, b, beta, 1.0);
  } else if (beta == 0.0) {
    sum.copy_(libraryProduct(a, b, sum.scalar_type()));
  } else {
    sum.add_(libraryProduct(a, b, sum.scalar_type()));
  }
}

}  // namespace torchformer::core
