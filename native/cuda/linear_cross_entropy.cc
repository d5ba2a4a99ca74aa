// The device op of core/device/linear_cross_entropy.cc on CUDA.
//
// Logits exist for as many rows at a time as fit into `bufferBytes`. Their row stride is a multiple
// of 64 elements, and with half types, whose weight is often a rounded copy anyway, that copy has
// as many rows: products of such sizes are the fastest.

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "core/product/product.h"
#include "core/support/label_smoothing.h"
#include "core/support/precision.h"
#include "linear_cross_entropy_kernel.h"
#include "tensors.h"

namespace torchformer::cuda {

namespace {

using core::isHalf;
using core::Products;
using Six = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

constexpr auto lossName = "linear_cross_entropy";

#if defined(TORCHFORMER_CUDA_EMULATED)
// Small, so that tests have several chunks.
constexpr int64_t bufferBytes = int64_t{1} << 13;
#else
constexpr int64_t bufferBytes = int64_t{1} << 30;
#endif

/// sum = scale a b, or sum + scale a b; `sum` is of the type of the factors, or float32 for half
/// ones.
void addProduct(at::Tensor sum, const at::Tensor& a, const at::Tensor& b, bool keepsSum,
                double scale) {
  const auto type = sum.scalar_type();
  const bool isPlain = !keepsSum && scale == 1.0;
  const double beta = keepsSum ? 1.0 : 0.0;
  if (a.scalar_type() == type) {
    if (isPlain) {
      at::mm_out(sum, a, b);
    } else {
      at::addmm_out(sum, sum, a, b, beta, scale);
    }
  } else if (a.is_cpu()) {
    // Emulated, because libtorch has these products only for GPUs.
    addProduct(sum, a.to(type), b.to(type), keepsSum, scale);
  } else if (isPlain) {
    at::mm_out(sum, a, b, type);
  } else {
    at::addmm_out(sum, sum, a, b, type, beta, scale);
  }
}

/// `weight` [V, D] in `type`, for half types with zero rows up to `paddedRows`.
at::Tensor asFactor(const at::Tensor& weight, at::ScalarType type, int64_t paddedRows) {
  const auto rows = weight.size(0);
  if (!isHalf(type) || rows == paddedRows) return weight.to(type);
  const auto padded = at::empty({paddedRows, weight.size(1)}, weight.options().dtype(type));
  padded.narrow(0, 0, rows).copy_(weight);
  padded.narrow(0, rows, paddedRows - rows).zero_();
  return padded;
}

/// The type to which float32 numbers are rounded before products.
at::ScalarType factorType(Products products) {
  switch (products) {
    case Products::bfloat16:
    case Products::bfloat16Results:
      return at::kBFloat16;
    case Products::float16Results:
      return at::kHalf;
    default:
      return at::kFloat;
  }
}

/// The formats of one call.
struct Types {
  at::ScalarType logits;  // also of losses and of sums of gradients
  at::ScalarType factors;

  Types(const at::Tensor& input, Products products)
      : logits(input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat),
        factors(input.scalar_type() == at::kFloat ? factorType(products) : input.scalar_type()) {}
};

Six pass(const at::Tensor& input, const at::Tensor& weight, const OptionalTensor& bias,
         const at::Tensor& target, int64_t ignoreIndex, double labelSmoothing,
         int64_t smoothingForm, double scale, int64_t products, bool wantsInput, bool wantsWeight,
         bool wantsBias) {
  const c10::DeviceGuard guard(input.device());
  const Types types(input, static_cast<Products>(products));
  const bool isNarrow = types.factors != types.logits;
  // Small gradients would underflow in float16, so the scale is applied after the products.
  const bool scalesLater = types.factors == at::kHalf;
  const double slopeScale = scalesLater ? 1.0 : scale;
  const double productScale = scalesLater ? scale : 1.0;
  const bool wantsAny = wantsInput || wantsWeight || wantsBias;
  const auto rows = input.size(0);
  const auto classes = weight.size(0);
  const core::SmoothedTarget smoothed(static_cast<core::SmoothingForm>(smoothingForm),
                                      labelSmoothing, classes, ignoreIndex);
  const auto options = input.options().dtype(types.logits);
  const auto tokenLosses = at::empty({rows}, options);
  const auto correct = at::empty({rows}, options.dtype(at::kBool));
  const auto gradInput = wantsInput ? at::empty(input.sizes(), input.options()) : at::Tensor();
  // Without rows there is no product to write them.
  const auto empty = [&](bool wanted, at::IntArrayRef sizes) {
    return !wanted     ? at::Tensor()
           : rows == 0 ? at::zeros(sizes, options)
                       : at::empty(sizes, options);
  };
  const auto gradWeight = empty(wantsWeight, weight.sizes());
  at::Tensor gradBias = wantsBias ? at::zeros({classes}, options) : at::Tensor();

  const auto stride = (classes + 63) / 64 * 64;
  const auto rowBytes = stride * static_cast<int64_t>(c10::elementSize(types.logits) +
                                                      (isNarrow && wantsAny ? 2 : 0));
  const auto mostRows = std::max<int64_t>(1, bufferBytes / rowBytes);
  const auto chunks = std::max<int64_t>(1, (rows + mostRows - 1) / mostRows);
  const auto perChunk = (rows + chunks - 1) / chunks;
  const auto logits = at::empty({perChunk, stride}, options);
  at::Tensor slopes;
  if (wantsAny)
    slopes = isNarrow ? at::empty({perChunk, stride}, options.dtype(types.factors)) : logits;

  const auto x = dense(input.to(types.factors));
  const auto factor = asFactor(weight, types.factors, stride);
  const auto columns = factor.size(0);
  const auto biases = bias.has_value() ? dense(bias->to(types.logits)) : at::Tensor();
  const auto targets = dense(target);
  for (int64_t start = 0; start < rows; start += perChunk) {
    const auto count = std::min(perChunk, rows - start);
    const auto xHere = x.narrow(0, start, count);
    addProduct(logits.narrow(0, 0, count).narrow(1, 0, columns), xHere, factor.t(),
               /*keepsSum=*/false, /*scale=*/1.0);
    check(lossName,
          launchLossRows({elementOf(types.logits), elementOf(types.factors), dataOf(logits),
                          dataOf(biases), targets.const_data_ptr<int64_t>() + start,
                          mutableDataOf(tokenLosses.narrow(0, start, count)),
                          correct.mutable_data_ptr<bool>() + start, mutableDataOf(slopes), count,
                          classes, stride, ignoreIndex, smoothed, slopeScale},
                         currentStream(input.device())));
    if (!wantsAny) continue;
    const auto slopesHere = slopes.narrow(0, 0, count);
    if (wantsInput) {
      addProduct(gradInput.narrow(0, start, count), slopesHere.narrow(1, 0, columns), factor,
                 /*keepsSum=*/false, productScale);
    }
    const auto ofClasses = slopesHere.narrow(1, 0, classes);
    if (wantsWeight)
      addProduct(gradWeight, ofClasses.t(), xHere, /*keepsSum=*/start > 0, productScale);
    if (wantsBias)
      gradBias.add_(at::sum(ofClasses, {0}, /*keepdim=*/false, types.logits), productScale);
  }
  const auto loss = at::sum(tokenLosses, at::kDouble).mul(scale).to(types.logits);
  return {loss,
          tokenLosses,
          correct.sum(),
          gradInput,
          core::narrowed(gradWeight, weight),
          core::narrowed(gradBias, bias.value_or(input))};
}

}  // namespace

void registerLinearCrossEntropy(torch::Library& library) {
  library.impl("linear_cross_entropy", TORCH_FN(pass));
}

}  // namespace torchformer::cuda
