#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "core/support/norm_form.h"
#include "core/support/seed.h"

// Norms over rows, forward and backward, on the device of the tensors. Formulas: ops/layer_norm.cc
// and ops/rms_norm.cc.

namespace torchformer::core {

struct NormResult {
  at::Tensor output;  // [..., D] in the requested dtype
  at::Tensor mean;    // [rows], float32, or float64 for float64 inputs
  at::Tensor std;     // [rows] likewise, without eps
};

struct NormGradients {
  at::Tensor input;  // undefined unless requested
  at::Tensor scale;  // [D]; in the dtype of the statistics
  at::Tensor shift;  // [D]
};

struct NormWanted {
  bool input, parameters;
};

/// Whether the device of `tensor` has kernels for these; if not, plain ops are used.
bool hasNormKernels(const at::Tensor& tensor);

/// `input` [..., D], `scale` [D], `shift` [D] or undefined, of any floating dtypes.
NormResult normForward(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                       const NormForm& form, at::ScalarType outputType);

/// `gradSum`, of the input's shape and dtype, is added to the gradient of the input; undefined
/// means 0. The order of all sums does not depend on the number of threads.
NormGradients normBackward(const at::Tensor& gradOutput, const at::Tensor& input,
                           const at::Tensor& scale, const at::Tensor& mean, const at::Tensor& std,
                           const at::Tensor& gradSum, const NormForm& form,
                           const NormWanted& wanted);

/// The norm of residual + drop(input).
struct DroppedSumNorm {
  at::Tensor sum;  // as residual
  NormResult norm;
};

/// `input` [..., D] is dropped with probability `p` and added to `residual` of the same shape.
DroppedSumNorm droppedSumNormForward(const at::Tensor& input, double p, const Seed& seed,
                                     const at::Tensor& residual, const at::Tensor& scale,
                                     const at::Tensor& shift, const NormForm& form,
                                     at::ScalarType outputType);

struct DroppedSumNormGradients {
  at::Tensor dropped;  // of the tensor before the dropout, in `inputType`
  NormGradients norm;  // `input`: of the sum, which is that of the residual
};

DroppedSumNormGradients droppedSumNormBackward(const at::Tensor& gradOutput,
                                               const at::Tensor& gradSum, const at::Tensor& sum,
                                               double p, const Seed& seed, at::ScalarType inputType,
                                               const at::Tensor& scale, const at::Tensor& mean,
                                               const at::Tensor& std, const NormForm& form,
                                               bool wantsParameters);

/// The norm of `input` in plain ops, differentiable any number of times; the readable form of
/// normForward.
at::Tensor composedNorm(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& shift,
                        const NormForm& form, at::ScalarType outputType);

void defineNormDeviceOps(torch::Library& library);

}  // namespace torchformer::core
