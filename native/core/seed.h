#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <cstdint>
#include <optional>

namespace torchformer::core {

/// The seed of the dropout masks of one call (see row_dropout.h).
struct Seed {
  int64_t number = 0;
  /// int64 [1] on the device: holds the seed instead of `number` where the call is part of a graph
  /// that is replayed, with another seed each time. Else undefined.
  at::Tensor slot;

  std::optional<at::Tensor> optionalSlot() const {
    return slot.defined() ? std::optional(slot) : std::nullopt;
  }
};

/// One 64-bit number from `generator`, a CPU one, else from the CPU's default generator. The same
/// for all devices: a seeded run drops the same elements everywhere, and no device has to be waited
/// for. While seeds come from slots (see useSeedSlots), the next slot.
Seed drawSeed(const std::optional<at::Generator>& generator, const at::Tensor& like);

/// From here on drawSeed of this thread hands out the elements of `slots`, int64 [n], one after the
/// other; undefined: generators again.
///
/// Returns how many were handed out before.
int64_t useSeedSlots(const at::Tensor& slots);

/// The ops that give graphs new seeds: `seed_slots(Tensor? slots) -> int` is useSeedSlots,
/// `draw_seeds(int count) -> Tensor` what so many calls of drawSeed would draw, int64 on the CPU.
void defineSeedOps(torch::Library& library);

}  // namespace torchformer::core
