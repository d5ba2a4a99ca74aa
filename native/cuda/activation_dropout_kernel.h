#pragma once

#include <cstdint>

#include "dropout_in_kernels.h"
#include "element.h"

namespace torchformer::cuda {

/// The numbers of core/support/activation.h.
enum class KernelActivation : int { relu, gelu, swiglu };

struct ActivationDropoutArguments {
  KernelActivation activation;
  Element type;          // of the rows
  void* main;            // dense rows [rows, columns], modified in place
  void* gate;            // likewise for swiglu, else null
  void* output;          // [rows, columns]; null for relu, whose result overwrites `main`
  const void* bias;      // [columns], or null
  const void* gateBias;  // likewise
  Element biasType;      // of both: `type`, or float32 beside a half type
  int64_t rows;
  int64_t columns;
  /// The value of `main` in dropped elements before the activation; for relu it is 0 after it.
  double closedValue;
  Dropping dropping;  // its scale is not applied
};

LaunchError launchActivationDropout(const ActivationDropoutArguments& arguments, void* stream);

}  // namespace torchformer::cuda
