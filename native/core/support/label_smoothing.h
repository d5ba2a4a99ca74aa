#pragma once

#include <cmath>
#include <cstdint>

#include "core/support/inline.h"

// The target distributions of label smoothing (paper, section 5.4), on the CPU and in CUDA kernels.

namespace torchformer::core {

enum class SmoothingForm : int64_t {
  /// (1 - s) at the target + s / V at every class: `label_smoothing` of PyTorch's cross_entropy.
  crossEntropy = 0,
  /// 1 - s at the target, s shared equally by the classes that are neither it nor the ignored id.
  /// The loss is the divergence from this distribution: the cross-entropy less its entropy.
  klDivergence = 1,
};

/// The distribution t of a target: `everywhere` at all classes except `excluded`, and `extra` more
/// at the target. The sum of t is 1.
struct SmoothedTarget {
  double extra = 1.0;
  double everywhere = 0.0;
  int64_t sharers = 1;    // number of classes that have `everywhere`
  int64_t excluded = -1;  // a class with t = 0, or -1
  double entropy = 0.0;   // sum of t log t, a part of the divergence

  SmoothedTarget(SmoothingForm form, double smoothing, int64_t classes, int64_t ignoreIndex) {
    if (smoothing == 0.0) return;
    if (form == SmoothingForm::crossEntropy) {
      sharers = classes;
      everywhere = smoothing / static_cast<double>(sharers);
      extra = 1.0 - smoothing;
      return;
    }
    if (ignoreIndex >= 0 && ignoreIndex < classes) excluded = ignoreIndex;
    sharers = classes - (excluded < 0 ? 0 : 1);
    everywhere = smoothing / static_cast<double>(sharers - 1);
    extra = 1.0 - smoothing - everywhere;
    entropy = smoothing * std::log(everywhere);
    if (smoothing < 1.0) entropy += (1.0 - smoothing) * std::log(1.0 - smoothing);
  }
};

/// The constants of one call, in the type of its losses.
template <typename T>
struct RowTarget {
  T extra, everywhere, spread, entropy;
  T sharers;
  int64_t excluded;

  explicit RowTarget(const SmoothedTarget& target)
      : extra(static_cast<T>(target.extra)),
        everywhere(static_cast<T>(target.everywhere)),
        spread(static_cast<T>(target.everywhere * static_cast<double>(target.sharers))),
        entropy(static_cast<T>(target.entropy)),
        sharers(static_cast<T>(target.sharers)),
        excluded(target.excluded) {}

  /// The loss of a row.
  ///
  /// @param logSum log of the sum of exp(logit - highest)
  /// @param atTarget logit - highest of the target
  /// @param mean of logit - highest over all classes but the excluded one
  TF_INLINE T loss(T logSum, T atTarget, T mean) const {
    const T sharp = extra * (logSum - atTarget);
    return everywhere > T(0) ? sharp + spread * (logSum - mean) + entropy : sharp;
  }
};

}  // namespace torchformer::core
