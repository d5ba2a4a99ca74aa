// The native tensors of one environment, each in a numbered slot. A JS Tensor holds the number in a
// private field, which no other code can read or write, so the number is valid for as long as the
// object lives. Objects need not be unwrapped, and the collector ties none to native memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <napi.h>

#include <cstdint>
#include <deque>
#include <vector>

namespace torchformer::bind {

// A storage whose memory is counted once for all tensors that share it.
struct CountedStorage {
  const void* storage;
  int64_t bytes = 0;
  // Number of slots whose tensor has this storage.
  int64_t slots = 0;
};

struct TensorSlot {
  // Undefined in a free slot.
  at::Tensor tensor;
  // The storage as it was counted; null if it is small.
  CountedStorage* counted = nullptr;
  // A weak reference to the last result of `grad`, so that the same gradient is the same object.
  c10::TensorImpl* gradientImpl = nullptr;
  Napi::ObjectReference gradientObject;

  bool isFree() const { return !tensor.defined(); }
};

class TensorTable {
 public:
  // Slot 0 is the slot of all disposed tensors, and is always free.
  static constexpr int64_t kDisposed = 0;

  TensorTable() { slots_.emplace_back(); }

  // Adds a tensor, which must be defined; returns its slot number.
  int64_t add(at::Tensor tensor) {
    live_++;
    if (free_.empty()) {
      slots_.emplace_back().tensor = std::move(tensor);
      return static_cast<int64_t>(slots_.size()) - 1;
    }
    const int64_t number = free_.back();
    free_.pop_back();
    slots_[number].tensor = std::move(tensor);
    return number;
  }

  // Null for a number outside the table. References stay valid when slots are added.
  TensorSlot* find(int64_t number) {
    const bool known = number >= 0 && number < static_cast<int64_t>(slots_.size());
    return known ? &slots_[number] : nullptr;
  }

  void remove(int64_t number) {
    TensorSlot& slot = slots_[number];
    slot.tensor.reset();
    if (slot.gradientImpl != nullptr) {
      slot.gradientImpl = nullptr;
      slot.gradientObject.Reset();
    }
    free_.push_back(number);
    live_--;
  }

  size_t live() const { return live_; }
  const std::deque<TensorSlot>& slots() const { return slots_; }

 private:
  std::deque<TensorSlot> slots_;
  std::vector<int64_t> free_;
  size_t live_ = 0;
};

}  // namespace torchformer::bind
