#include "seed.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

#include "check.h"

namespace torchformer::core {

namespace {

struct Slots {
  at::Tensor tensor;
  int64_t used = 0;
};

thread_local Slots slots;

}  // namespace

Seed drawSeed(const std::optional<at::Generator>& generator, const at::Tensor& like) {
  if (slots.tensor.defined() && slots.tensor.device() == like.device()) {
    TF_CHECK(ERR_ARGUMENT, slots.used < slots.tensor.size(0), "this graph draws more than the ",
             slots.tensor.size(0), " seeds that there are slots for");
    return {0, slots.tensor.narrow(0, slots.used++, 1)};
  }
  auto* source = at::get_generator_or_default<at::CPUGeneratorImpl>(
      generator, at::detail::getDefaultCPUGenerator());
  const std::lock_guard<std::mutex> lock(source->mutex_);
  return {static_cast<int64_t>(source->random64()), {}};
}

int64_t useSeedSlots(const at::Tensor& tensor) {
  const auto used = slots.used;
  slots = {tensor, 0};
  return used;
}

}  // namespace torchformer::core
