#include "counter_random.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <mutex>

namespace torchformer::core {

uint64_t drawSeed(const std::optional<at::Generator>& generator) {
  auto* source = at::get_generator_or_default<at::CPUGeneratorImpl>(
      generator, at::detail::getDefaultCPUGenerator());
  const std::lock_guard<std::mutex> lock(source->mutex_);
  return source->random64();
}

uint32_t RowDropout::thresholdOf(double p) {
  constexpr double range = 4294967296.0;
  return static_cast<uint32_t>(std::clamp(std::round(p * range), 0.0, range - 1.0));
}

}  // namespace torchformer::core
