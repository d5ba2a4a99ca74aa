#pragma once

#include <cstdint>

#include "element.h"

namespace torchformer::cuda {

struct AdamRowsArguments {
  Element type;     // float32 or float64, of parameter, moments and values
  void* parameter;  // [rows, columns], as the moments
  void* expAvg;
  void* expAvgSq;
  bool* touched;         // [rows]
  const int64_t* ids;    // [entries], ascending
  const int64_t* order;  // [entries]: the index in `values` of an id's entry; null if in order
  const void* values;    // [entries, columns]
  const float* step;     // one number, counted from 1
  const float* lr;       // one number, instead of `rate`; null to use `rate`
  double rate;
  double beta1, beta2, eps;
  int64_t rows;
  int64_t columns;
  int64_t entries;
};

LaunchError launchAdamRows(const AdamRowsArguments& arguments, void* stream);

}  // namespace torchformer::cuda
