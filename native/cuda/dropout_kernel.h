#pragma once

#include <cstdint>

#include "dropout_in_kernels.h"
#include "element.h"

namespace torchformer::cuda {

struct DropArguments {
  Element inputType, outputType;
  const void* input;     // dense rows [rows, columns]
  const void* residual;  // of outputType, added; or null
  void* output;
  int64_t rows;
  int64_t columns;
  Dropping dropping;
};

/// output = residual + drop(input).
LaunchError launchDrop(const DropArguments& arguments, void* stream);

/// kept[rows, columns] = whether an element is kept.
LaunchError launchKeptMask(bool* kept, int64_t rows, int64_t columns, const Dropping& dropping,
                           void* stream);

}  // namespace torchformer::cuda
