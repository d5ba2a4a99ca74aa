#include "core/support/dropout_bits.h"

#include <algorithm>
#include <cmath>

namespace torchformer::core {

uint32_t dropThreshold(double p) {
  constexpr double range = 4294967296.0;
  return static_cast<uint32_t>(std::clamp(std::round(p * range), 0.0, range - 1.0));
}

double survivorScale(double p) { return p < 1.0 ? 1.0 / (1.0 - p) : 0.0; }

}  // namespace torchformer::core
