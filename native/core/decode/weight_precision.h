#pragma once

#include <cstdint>
#include <string_view>

namespace torchformer::core {

/// How the weights of prepared layers are stored. Products and everything else are float32.
enum class WeightPrecision : int64_t {
  float32,
  bfloat16,  // half the memory
  int8,      // a quarter: whole numbers from -127 to 127 with a scale for each output feature
};

/// "float32", "bfloat16" or "int8"; anything else is an ERR_ARGUMENT. `op` is for the message.
WeightPrecision parseWeightPrecision(const char* op, std::string_view name);

}  // namespace torchformer::core
