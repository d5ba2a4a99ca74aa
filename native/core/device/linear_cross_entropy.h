#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "core/product/product.h"
#include "core/support/label_smoothing.h"

// The loss of linear_cross_entropy and its gradients, on the device of the tensors.
// Formulas: ops/linear_cross_entropy.cc.

namespace torchformer::core {

struct LossSettings {
  int64_t ignoreIndex;
  double labelSmoothing;
  SmoothingForm smoothingForm;
  double scale;
  Products products;

  SmoothedTarget smoothedTarget(int64_t classes) const {
    return {smoothingForm, labelSmoothing, classes, ignoreIndex};
  }
};

/// Which gradients are requested.
struct LossGradientsWanted {
  bool input, weight, bias;
  bool any() const { return input || weight || bias; }
};

struct LossAndGradients {
  at::Tensor loss;         // scalar, float32, or float64 for float64 inputs
  at::Tensor tokenLosses;  // [N] likewise
  at::Tensor correct;      // int64 scalar
  // In the dtypes of their tensors; undefined unless requested.
  at::Tensor gradInput, gradWeight, gradBias;
};

/// Whether the device of `tensor` has kernels for this; if not, plain ops are used.
bool hasLossKernels(const at::Tensor& tensor);

/// `input` [N, D], `weight` [V, D], `bias` [V] or undefined, `target` int64 [N], all checked.
///
/// Weight and bias may be float32 beside an input of a half type: the factors of all products are
/// then rounded to that type, and the gradients of weight and bias are float32. On the CPU each
/// target must be a class or ignored. Elsewhere a check would have to synchronize with the device:
/// the loss of an invalid target is NaN, and its row does not contribute to the gradients.
LossAndGradients lossAndGradients(const at::Tensor& input, const at::Tensor& weight,
                                  const at::Tensor& bias, const at::Tensor& target,
                                  const LossSettings& settings, const LossGradientsWanted& wanted);

void defineLossDeviceOp(torch::Library& library);

}  // namespace torchformer::core
