#include "core/product/kept_panels.h"

#include <ATen/ops/empty.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include <algorithm>
#include <iterator>
#include <list>
#include <mutex>
#include <vector>

#include "core/product/tiled_product.h"
#include "core/product/weight_state.h"

namespace torchformer::core {

namespace {

struct Kept {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  const void* data;  // of the first element; another view has another, or other strides
  std::vector<int64_t> sizes, strides;
  at::ScalarType dtype;
  WeightState state;
  at::Tensor panels;

  bool isOf(const at::Tensor& b) const {
    return data == b.const_data_ptr() && dtype == b.scalar_type() && b.sizes() == sizes &&
           b.strides() == strides;
  }
};

/// All kept panels of the process; most recently used first. Weights may be shared by threads.
class KeptPanels {
 public:
  at::Tensor find(const at::Tensor& b, const WeightState& state) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto kept = list_.begin(); kept != list_.end();) {
      if (kept->storage.expired()) {
        // Its address may belong to another tensor by now.
        kept = remove(kept);
      } else if (!kept->isOf(b)) {
        ++kept;
      } else if (kept->state == state) {
        list_.splice(list_.begin(), list_, kept);
        return list_.front().panels;
      } else {
        remove(kept);
        break;
      }
    }
    return {};
  }

  void insert(const at::Tensor& b, const WeightState& state, const at::Tensor& panels) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto* storage = b.storage().unsafeGetStorageImpl();
    makeRoom(storage,
             2 * static_cast<int64_t>(storage->nbytes()) - static_cast<int64_t>(panels.nbytes()));
    list_.push_front({c10::weak_intrusive_ptr<c10::StorageImpl>(b.storage().getWeakStorageImpl()),
                      b.const_data_ptr(), b.sizes().vec(), b.strides().vec(), b.scalar_type(),
                      state, panels});
    bytes_ += static_cast<int64_t>(panels.nbytes());
    while (bytes_ > mostKeptPanelBytes) remove(std::prev(list_.end()));
  }

 private:
  /// Views of one storage, each with panels of its own, may take so many bytes together.
  void makeRoom(const c10::StorageImpl* storage, int64_t most) {
    int64_t taken = 0;
    for (auto kept = list_.begin(); kept != list_.end();) {
      const bool isOfStorage = kept->storage._unsafe_get_target() == storage;
      const auto bytes = isOfStorage ? static_cast<int64_t>(kept->panels.nbytes()) : 0;
      if (isOfStorage && taken + bytes > most) {
        kept = remove(kept);
      } else {
        taken += bytes;
        ++kept;
      }
    }
  }

  std::list<Kept>::iterator remove(std::list<Kept>::iterator kept) {
    bytes_ -= static_cast<int64_t>(kept->panels.nbytes());
    return list_.erase(kept);
  }

  std::mutex mutex_;
  std::list<Kept> list_;
  int64_t bytes_ = 0;
};

KeptPanels& keptPanelsOfProcess() {
  // Never destroyed: threads may still multiply while the process ends.
  static auto* const panels = new KeptPanels;
  return *panels;
}

template <typename T>
at::Tensor packed(const at::Tensor& b) {
  const auto* kernel = tileKernel<T>();
  if (kernel == nullptr) return {};
  auto panels = at::empty({packedSize(*kernel, b.size(0), b.size(1))}, b.options());
  packForProducts(*kernel, {b.const_data_ptr<T>(), b.stride(0), b.stride(1)}, b.size(0), b.size(1),
                  panels.template mutable_data_ptr<T>());
  return panels;
}

}  // namespace

at::Tensor packedPanels(const at::Tensor& b) {
  return b.scalar_type() == at::kDouble ? packed<double>(b) : packed<float>(b);
}

at::Tensor keptPanels(const at::Tensor& b, const at::Tensor& weight) {
  if (weight.is_inference() || b.numel() == 0) return {};
  const auto state = weightState(b, weight);
  auto& all = keptPanelsOfProcess();
  auto panels = all.find(b, state);
  if (panels.defined()) return panels;
  panels = packedPanels(b);
  if (panels.defined() && static_cast<int64_t>(panels.nbytes()) <= mostKeptPanelBytes)
    all.insert(b, state, panels);
  return panels;
}

}  // namespace torchformer::core
