#pragma once

#include <ATen/core/Tensor.h>

// Norms over rows on the CPU, forward and backward in one pass over memory each.

namespace torchformer::core {

/// Which norm; the formulas are in layer_norm.cc and rms_norm.cc.
struct NormForm {
  double eps;
  /// The statistics divide by n - 1 instead of n.
  bool sampleStd = false;
  /// eps is added to the standard deviation, not to the variance.
  bool epsOutside = false;
  /// Without it the mean is taken as 0, and the deviation from it is the root mean square.
  bool centred = true;
};

struct NormResult {
  at::Tensor output;  // as the input
  at::Tensor mean;    // [rows]
  at::Tensor std;     // [rows], without eps
};

/// `input` [..., D], `scale` [D], `shift` [D] or undefined, all float32 or all float64.
NormResult normForward(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                       const NormForm& form);

struct NormGradients {
  at::Tensor input;  // undefined unless wanted
  at::Tensor scale;  // [D]
  at::Tensor shift;  // [D]
};

/// All sums are made in an order that does not depend on the number of threads.
NormGradients normBackward(const at::Tensor& gradOutput, const at::Tensor& input,
                           const at::Tensor& scale, const at::Tensor& mean, const at::Tensor& std,
                           const NormForm& form, bool wantsInput);

}  // namespace torchformer::core
