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
  /// int64 [1] on the device: holds the seed instead of `number` if the call is part of a graph
  /// that is replayed with a new seed each time. Else undefined.
  at::Tensor slot;

  OptionalTensor optionalSlot() const { return optional(slot); }
};

/// The value in `slot`, which synchronizes with its device, else `number`.
inline uint64_t seedOf(int64_t number, const OptionalTensor& slot) {
  return static_cast<uint64_t>(slot.has_value() ? slot->item<int64_t>() : number);
}

/// For dropout with probability `p`, one 64-bit number from `generator`, a CPU generator, else from
/// the default CPU generator; nothing is drawn for p = 0. The same for all devices: a seeded run
/// drops the same elements everywhere, without synchronizing with a device. While seeds come from
/// slots (see useSeedSlots), the next slot.
Seed drawSeed(double p, const OptionalGenerator& generator, const at::Tensor& like);

/// From now on, drawSeed on this thread returns the elements of `slots`, int64 [n], in order; with
/// an undefined tensor, it uses generators again.
///
/// Returns the number of slots used before.
int64_t useSeedSlots(const at::Tensor& slots);

/// The ops that give graphs new seeds: `seed_slots(Tensor? slots) -> int` is useSeedSlots,
/// `draw_seeds(int count) -> Tensor` returns `count` results of drawSeed, int64 on the CPU.
void defineSeedOps(torch::Library& library);

}  // namespace torchformer::core
