#pragma once

#include <cstdint>

#include "core/support/label_smoothing.h"
#include "element.h"

namespace torchformer::cuda {

struct LossRowsArguments {
  Element logitType;     // float32 or float64, also of bias and losses
  Element gradientType;  // logitType, or a half type for float32 logits
  const void* logits;    // [rows, stride], the first `classes` of each row count
  const void* bias;      // [classes], or null
  const int64_t* target;
  void* losses;   // [rows]
  bool* correct;  // [rows]
  // [rows, stride], may be `logits`; null unless requested. Zeros after the classes.
  void* gradient;
  int64_t rows;
  int64_t classes;
  int64_t stride;  // a multiple of 4
  int64_t ignoreIndex;
  core::SmoothedTarget smoothed;
  double scale;
};

/// Loss of each row of logits, and `scale` times its gradient for the logits. An ignored row gives
/// zeros; one whose target is not a class gives NaN and a gradient of zeros.
LaunchError launchLossRows(const LossRowsArguments& arguments, void* stream);

}  // namespace torchformer::cuda
