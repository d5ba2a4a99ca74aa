#pragma once

#include "../core/support/dropout_bits.h"
#include "element.h"

namespace torchformer::cuda {

/// The seed of a dropout mask. A captured graph draws a new one for each replay: it is then in
/// device memory at `slot`, else it is `number`.
struct Seed {
  uint64_t number = 0;
  const int64_t* slot = nullptr;

  TF_DEVICE uint64_t read() const {
    return slot == nullptr ? number : static_cast<uint64_t>(*slot);
  }
};

/// A dropout as kernels apply it. Without one, everything is kept and the scale is 1.
struct Dropping {
  Seed seed;
  uint32_t threshold = 0;
  double scale = 1.0;
  /// Nothing is kept at all (p = 1): 0, not 0 * infinity.
  bool all = false;
  bool none = true;

  static Dropping of(double p, Seed seed) {
    return {seed, core::dropThreshold(p), core::survivorScale(p), p >= 1.0, p <= 0.0};
  }
};

/// The elements of one row under a dropout.
template <typename C>
class DroppingRow {
 public:
  TF_DEVICE DroppingRow(const Dropping& dropping, int64_t row)
      : row_(dropping.none ? 0 : dropping.seed.read(), static_cast<uint64_t>(row),
             dropping.threshold),
        scale_(static_cast<C>(dropping.scale)),
        all_(dropping.all),
        none_(dropping.none) {}

  TF_DEVICE bool keeps(int64_t column) const {
    return none_ || (!all_ && row_.keeps(static_cast<uint32_t>(column)));
  }

  TF_DEVICE C operator()(C value, int64_t column) const {
    return keeps(column) ? value * scale_ : C(0);
  }

 private:
  core::RowDropout row_;
  C scale_;
  bool all_;
  bool none_;
};

}  // namespace torchformer::cuda
