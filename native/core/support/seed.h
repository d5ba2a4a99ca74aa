#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <cstdint>

#include "core/support/optional.h"

namespace torchformer::core {

/// The seed of the dropout masks of one call (see support/dropout_bits.h).
struct Seed {
  int64_t number = 0;
  /// int64 [1] on the device: holds the seed instead of `number` where the call is part of a graph
  /// that is replayed, with another seed each time. Else undefined.
  at::Tensor slot;

  OptionalTensor optionalSlot() const { return optional(slot); }
};

/// What `slot` holds, which is waited for, else `number`.
inline uint64_t seedOf(int64_t number, const OptionalTensor& slot) {
  return static_cast<uint64_t>(slot.has_value() ? slot->item<int64_t>() : number);
}

/// For a dropout with probability `p` one 64-bit number from `generator`, a CPU one, else from the
/// CPU's default generator; nothing is drawn for p = 0. The same for all devices: a seeded run
/// drops the same elements everywhere, and no device has to be waited for. While seeds come from
/// slots (see useSeedSlots), the next slot.
Seed drawSeed(double p, const OptionalGenerator& generator, const at::Tensor& like);

/// From here on drawSeed of this thread hands out the elements of `slots`, int64 [n], one after the
/// other; undefined: generators again.
///
/// Returns how many were handed out before.
int64_t useSeedSlots(const at::Tensor& slots);

/// The ops that give graphs new seeds: `seed_slots(Tensor? slots) -> int` is useSeedSlots,
/// `draw_seeds(int count) -> Tensor` what so many calls of drawSeed would draw, int64 on the CPU.
void defineSeedOps(torch::Library& library);

}  // namespace torchformer::core
