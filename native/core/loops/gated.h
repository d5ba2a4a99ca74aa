#pragma once

#include <cstdint>

namespace torchformer::core {

/// values = silu(values) * gate, in place.
void siluTimes(float* values, const float* gate, int64_t count);

}  // namespace torchformer::core
