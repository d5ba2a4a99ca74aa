#include "counter_random.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>

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

at::Tensor keptByCounter(uint64_t seed, int64_t rows, int64_t columns, double p) {
  auto kept = at::empty({rows, columns}, at::TensorOptions().dtype(at::kBool));
  auto* data = kept.mutable_data_ptr<bool>();
  const auto threshold = RowDropout::thresholdOf(p);
  for (int64_t row = 0; row < rows; ++row) {
    const RowDropout dropout(seed, static_cast<uint64_t>(row), threshold);
    for (int64_t column = 0; column < columns; ++column) {
      data[row * columns + column] = p < 1.0 && dropout.keeps(static_cast<uint32_t>(column));
    }
  }
  return kept;
}

}  // namespace torchformer::core
