#pragma once

#include <cstdint>

#include "core/support/label_smoothing.h"

// The loops of linear_cross_entropy over one row.

namespace torchformer::core {

struct RowResult {
  double loss;
  bool correct;  // the target's logit is the best, the first of equal ones
};

/// Loss of one row of logits without their bias, which may be null. If `wantsGradient`, they are
/// overwritten with `scale` times the gradient, else their values are undefined afterwards.
RowResult lossOfRow(float* logits, const float* bias, int64_t classes, int64_t target,
                    const SmoothedTarget& smoothed, float scale, bool wantsGradient);
RowResult lossOfRow(double* logits, const double* bias, int64_t classes, int64_t target,
                    const SmoothedTarget& smoothed, double scale, bool wantsGradient);

/// sum += row
void addRow(float* sum, const float* row, int64_t size);
void addRow(double* sum, const double* row, int64_t size);

}  // namespace torchformer::core
