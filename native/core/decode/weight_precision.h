#pragma once

#include <cstdint>
#include <string_view>

namespace torchformer::core {

/// How the weights of prepared layers are stored. Sums and everything else are float32.
enum class WeightPrecision : int64_t {
  float32,
  bfloat16,  // half the memory
  int8,  // a quarter: whole numbers with a scale for each output feature, times activations that
         // are rounded to 8 bits with a scale for each row
};

/// "float32", "bfloat16" or "int8"; anything else is an ERR_ARGUMENT. `op` is for the message.
WeightPrecision parseWeightPrecision(const char* op, std::string_view name);

}  // namespace torchformer::core
