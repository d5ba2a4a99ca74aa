#pragma once

#include <cstdint>

#include "../core/support/norm_form.h"
#include "dropout_in_kernels.h"
#include "element.h"

// Launchers of the norm kernels. Pointers are device memory of dense rows [rows, columns]; all
// kernels are queued on `stream`.

namespace torchformer::cuda {

using core::NormForm;

/// Statistics, scale and shift are float, or double for float64 rows.
struct NormForwardArguments {
  Element inputType, outputType;
  const void* input;
  const void* scale;
  const void* shift;  // may be null
  void* output;
  void* mean;  // [rows]
  void* std;   // [rows], without eps
  int64_t rows;
  int64_t columns;
  NormForm form;
  // With a residual, the input is dropped and added to it first; the sum is normalised and stored.
  const void* residual = nullptr;
  void* sum = nullptr;
  Element sumType = Element::float32;  // of residual and sum
  Dropping dropping = {};
};

LaunchError launchNormForward(const NormForwardArguments& arguments, void* stream);

/// Number of rows of partial sums for the gradients of scale and shift.
int64_t normPartialRows(int64_t rows, int64_t columns);

struct NormBackwardArguments {
  Element inputType, gradType;
  const void* gradOutput;
  const void* input;
  const void* scale;
  const void* mean;
  const void* std;
  const void* gradSum;  // of inputType, added to gradInput; or null
  void* gradInput;      // of inputType; null unless requested
  // [normPartialRows, columns] each, and [columns]; null unless requested
  void* scalePartials;
  void* shiftPartials;
  void* gradScale;
  void* gradShift;
  int64_t rows;
  int64_t columns;
  NormForm form;
  // After a sum with dropout: gradInput through the dropout.
  void* gradDropped = nullptr;
  Element droppedType = Element::float32;
  Dropping dropping = {};
};

LaunchError launchNormBackward(const NormBackwardArguments& arguments, void* stream);

}  // namespace torchformer::cuda
