#pragma once

#include <cstdint>

#include "dropout_in_kernels.h"
#include "element.h"

namespace torchformer::cuda {

/// A table and the rows to look up; a row number out of range makes the result NaN and its gradient
/// 0.
struct LookedUp {
  const void* data;    // dense rows [size, columns]; null in the backward pass
  const int64_t* ids;  // [rows]; null if there is no such table
  int64_t size;
};

struct EmbedArguments {
  Element type;  // of weight and output, or of both gradients
  LookedUp weight;
  LookedUp table;          // of the accumulation type
  const void* gradOutput;  // only in the backward pass
  void* output;            // [rows, columns]
  int64_t rows;
  int64_t columns;
  double scale;
  Dropping dropping;
};

/// output = drop(weight[ids] * scale + table[positions]).
LaunchError launchEmbed(const EmbedArguments& arguments, void* stream);

/// output = scale * drop(gradOutput).
LaunchError launchEmbedBackward(const EmbedArguments& arguments, void* stream);

}  // namespace torchformer::cuda
