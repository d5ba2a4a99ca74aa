#include "core/support/seed.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>

#include <mutex>

#include "core/support/check.h"

namespace torchformer::core {

namespace {

struct Slots {
  at::Tensor tensor;
  int64_t used = 0;
};

thread_local Slots slots;

uint64_t drawNumber(const OptionalGenerator& generator) {
  auto* source = at::get_generator_or_default<at::CPUGeneratorImpl>(
      generator, at::detail::getDefaultCPUGenerator());
  const std::lock_guard<std::mutex> lock(source->mutex_);
  return source->random64();
}

at::Tensor drawSeeds(int64_t count, OptionalGenerator generator) {
  TF_CHECK(ERR_ARGUMENT, count >= 0, "draw_seeds: count must be at least 0, got ", count);
  const auto seeds = at::empty({count}, at::TensorOptions().dtype(at::kLong));
  auto* numbers = seeds.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < count; ++i) numbers[i] = static_cast<int64_t>(drawNumber(generator));
  return seeds;
}

int64_t seedSlots(const OptionalTensor& given) {
  const auto tensor = orNone(given);
  TF_CHECK(ERR_ARGUMENT,
           !tensor.defined() ||
               (tensor.scalar_type() == at::kLong && tensor.dim() == 1 && tensor.is_contiguous()),
           "seed_slots: slots must be contiguous int64 [n]");
  return useSeedSlots(tensor);
}

}  // namespace

Seed drawSeed(double p, const OptionalGenerator& generator, const at::Tensor& like) {
  if (p == 0.0) return {};
  if (slots.tensor.defined() && slots.tensor.device() == like.device()) {
    TF_CHECK(ERR_ARGUMENT, slots.used < slots.tensor.size(0), "this graph draws more than the ",
             slots.tensor.size(0), " seeds that there are slots for");
    return {0, slots.tensor.narrow(0, slots.used++, 1)};
  }
  return {static_cast<int64_t>(drawNumber(generator)), {}};
}

int64_t useSeedSlots(const at::Tensor& tensor) {
  const auto used = slots.used;
  slots = {tensor, 0};
  return used;
}

void defineSeedOps(torch::Library& library) {
  library.def("seed_slots(Tensor? slots) -> int",
              torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, TORCH_FN(seedSlots)));
  library.def("draw_seeds(int count, *, Generator? generator=None) -> Tensor",
              torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, TORCH_FN(drawSeeds)));
}

}  // namespace torchformer::core
