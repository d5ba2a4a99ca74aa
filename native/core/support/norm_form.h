#pragma once

#include <cmath>
#include <cstdint>

#include "core/support/inline.h"

// The kind of norm and its statistics of a row, on the CPU and in CUDA kernels. Formulas:
// ops/layer_norm.cc and ops/rms_norm.cc.

namespace torchformer::core {

struct NormForm {
  double eps;
  /// The statistics divide by n - 1 instead of n.
  bool sampleStd = false;
  /// eps is added to the standard deviation, not to the variance.
  bool epsOutside = false;
  /// If false, the mean is taken as 0, and the deviation from it is the root mean square.
  bool centred = true;
};

/// The constants of one call, in the type of its statistics.
template <typename T>
struct RowForm {
  int64_t features;
  T eps;
  T count;    // n
  T divisor;  // of the squares: n or n - 1
  bool epsOutside;
  bool centred;

  RowForm(const NormForm& form, int64_t size)
      : features(size),
        eps(static_cast<T>(form.eps)),
        count(static_cast<T>(size)),
        divisor(static_cast<T>(form.sampleStd ? size - 1 : size)),
        epsOutside(form.epsOutside),
        centred(form.centred) {}

  TF_INLINE T spreadOf(T std) const {
    using std::sqrt;
    return epsOutside ? std + eps : sqrt(std * std + eps);
  }
};

}  // namespace torchformer::core
