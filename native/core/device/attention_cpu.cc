// Attention over padded batches on the CPU: each head of each batch row by the loops that packed
// attention uses too. Scores stay in the cache; the backward pass computes them again.

#include "core/device/attention_cpu.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <vector>

#include "core/loops/attention.h"
#include "core/loops/longest_first.h"

namespace torchformer::core {

namespace {

/// [B, (H,) S, D] -> [B, H, S, D], with each row contiguous within itself.
at::Tensor headed(const at::Tensor& tensor) {
  const auto split = tensor.dim() == 4 ? tensor : tensor.unsqueeze(1);
  return split.size(3) == 1 || split.stride(3) == 1 ? split : split.contiguous();
}

/// [B, H, S, last] with the order of dimensions in memory that `rows` [B, H, S, D] has, so that
/// heads split by a transpose can be joined without a copy.
at::Tensor emptyRowsLike(const at::Tensor& rows, int64_t last) {
  const auto sizes = rows.sizes();
  if (rows.stride(1) >= rows.stride(2)) {
    return at::empty({sizes[0], sizes[1], sizes[2], last}, rows.options());
  }
  return at::empty({sizes[0], sizes[2], sizes[1], last}, rows.options()).transpose(1, 2);
}

/// Without the dimension that `headed` added.
at::Tensor likeGiven(const at::Tensor& tensor, const at::Tensor& given) {
  return given.dim() == 4 ? tensor : tensor.squeeze(1);
}

/// The masks of all heads in the form of HeadMask.
class HeadMasks {
 public:
  /// `mask`: [B|1, H|1, Sq|1, Sk|1], or undefined.
  HeadMasks(const at::Tensor& mask, int64_t queries, int64_t keys, bool clearsEmptyRows)
      : queries_(queries), keys_(keys) {
    if (!mask.defined()) return;
    batches_ = mask.size(0);
    heads_ = mask.size(1);
    columns_ = mask.size(2) == 1 ? 1 : maskColumns(queries);
    visible_.assign(static_cast<size_t>(batches_ * heads_), keys);
    const auto bytes = mask.options().dtype(at::kByte);
    allowed_ = at::empty({batches_ * heads_, keys, columns_}, bytes);
    empty_ = at::empty({batches_ * heads_, mask.size(2)}, bytes);
    const auto given = mask.contiguous();
    at::parallel_for(0, batches_ * heads_, 8, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) transpose(given, i, clearsEmptyRows);
    });
    clears_ = clearsEmptyRows;
  }

  HeadMask of(int64_t batch, int64_t head) const {
    if (batches_ == 0) return {};
    const auto index = indexOf(batch, head);
    return {allowed_.const_data_ptr<uint8_t>() + index * keys_ * columns_,
            columns_ == 1 ? 0 : columns_,
            clears_ ? empty_.const_data_ptr<uint8_t>() + index * empty_.size(1) : nullptr};
  }

  /// The number of keys up to the last one that has a weight in some row.
  int64_t visibleKeys(int64_t batch, int64_t head) const {
    return batches_ == 0 ? keys_ : visible_[static_cast<size_t>(indexOf(batch, head))];
  }

 private:
  int64_t indexOf(int64_t batch, int64_t head) const {
    return (batches_ == 1 ? 0 : batch) * heads_ + (heads_ == 1 ? 0 : head);
  }

  void transpose(const at::Tensor& mask, int64_t index, bool clearsEmptyRows) {
    const auto rows = mask.size(2);
    const auto columns = mask.size(3);
    const bool* const flags = mask.const_data_ptr<bool>() + index * rows * columns;
    uint8_t* const allowed = allowed_.mutable_data_ptr<uint8_t>() + index * keys_ * columns_;
    uint8_t* const empty = empty_.mutable_data_ptr<uint8_t>() + index * rows;
    if (rows != columns_) std::fill(allowed, allowed + keys_ * columns_, uint8_t{0});
    int64_t visible = 1;
    bool isAnyEmpty = false;
    for (int64_t i = 0; i < rows; ++i) {
      int64_t last = 0;
      for (int64_t j = 0; j < keys_; ++j) {
        const bool flag = flags[i * columns + (columns == 1 ? 0 : j)];
        allowed[j * columns_ + i] = flag ? 1 : 0;
        if (flag) last = j + 1;
      }
      empty[i] = last == 0 ? 1 : 0;
      isAnyEmpty = isAnyEmpty || last == 0;
      visible = std::max(visible, last);
    }
    // An empty row with uniform weights has one for every key.
    visible_[static_cast<size_t>(index)] = isAnyEmpty && !clearsEmptyRows ? keys_ : visible;
  }

  int64_t queries_;
  int64_t keys_;
  int64_t batches_ = 0;
  int64_t heads_ = 0;
  int64_t columns_ = 0;
  bool clears_ = false;
  at::Tensor allowed_;  // [masks, Sk, columns]
  at::Tensor empty_;    // [masks, Sq|1]
  std::vector<int64_t> visible_;
};

/// The inputs of one call, by head.
template <typename T>
class Heads {
 public:
  explicit Heads(const CpuAttention& given)
      : query_(headed(given.query)),
        key_(headed(given.key)),
        value_(headed(given.value)),
        masks_(given.mask.defined() && given.mask.dim() == 3 ? given.mask.unsqueeze(1) : given.mask,
               query_.size(2), key_.size(2), given.clearsEmptyRows),
        settings_{query_.size(3), value_.size(3), false, given.dropoutP, given.seed} {}

  const at::Tensor& query() const { return query_; }
  const at::Tensor& key() const { return key_; }
  const at::Tensor& value() const { return value_; }
  const AttentionSettings& settings() const { return settings_; }
  int64_t batches() const { return query_.size(0); }
  int64_t heads() const { return query_.size(1); }
  int64_t queries() const { return query_.size(2); }
  int64_t keys() const { return key_.size(2); }
  int64_t visibleKeys(int64_t batch, int64_t head) const { return masks_.visibleKeys(batch, head); }

  Head<T> head(int64_t batch, int64_t head) const {
    const auto keys = visibleKeys(batch, head);
    auto keyRows = rowsOf<const T>(key_, batch, head);
    auto valueRows = rowsOf<const T>(value_, batch, head);
    keyRows.rows = keys;
    valueRows.rows = keys;
    return {rowsOf<const T>(query_, batch, head), keyRows, valueRows, masks_.of(batch, head),
            (batch * heads() + head) * queries(), 1};
  }

  template <typename Element>
  static HeadRows<Element> rowsOf(const at::Tensor& tensor, int64_t batch, int64_t head) {
    if (!tensor.defined()) return {};
    const auto start = batch * tensor.stride(0) + head * tensor.stride(1);
    if constexpr (std::is_const_v<Element>) {
      return {tensor.const_data_ptr<T>() + start, tensor.size(2), tensor.stride(2)};
    } else {
      return {tensor.mutable_data_ptr<T>() + start, tensor.size(2), tensor.stride(2)};
    }
  }

  /// Of [2, B, H, Sq].
  template <typename Element>
  SoftmaxSums<Element> sums(Element* data, int64_t batch, int64_t head) const {
    Element* const highest = data + (batch * heads() + head) * queries();
    return {highest, highest + batches() * heads() * queries()};
  }

  /// Calls visit(batch, head, scratch) for all of them, on all threads.
  template <typename Visit>
  void forEach(const Visit& visit) const {
    std::vector<CostedItem> items;
    for (int64_t b = 0; b < batches(); ++b) {
      items.push_back({b, queries() * visibleKeys(b, 0) * settings_.width});
    }
    const LongestFirst work(std::move(items), heads());
    const auto size = attentionScratchSize<T>(queries(), keys(), settings_);
    const auto scratch = at::empty({work.threads(), size}, query_.options());
    T* const buffers = scratch.template mutable_data_ptr<T>();
    work.forEach([&](int64_t batch, int64_t head, int64_t thread) {
      visit(batch, head, buffers + thread * size);
    });
  }

 private:
  at::Tensor query_, key_, value_;
  HeadMasks masks_;
  AttentionSettings settings_;
};

template <typename T>
CpuAttentionResult forwardOf(const CpuAttention& given, bool needsWeights) {
  const Heads<T> heads(given);
  const auto output = emptyRowsLike(heads.query(), heads.value().size(3));
  const auto options = output.options();
  const auto sums = at::empty({2, heads.batches(), heads.heads(), heads.queries()}, options);
  at::Tensor weights;
  if (needsWeights) {
    weights = at::empty({heads.batches(), heads.heads(), heads.queries(), heads.keys()}, options);
  }
  T* const sumsData = sums.template mutable_data_ptr<T>();
  heads.forEach([&](int64_t batch, int64_t head, T* scratch) {
    const auto weightRows = Heads<T>::template rowsOf<T>(weights, batch, head);
    attendHead<T>(heads.head(batch, head), Heads<T>::template rowsOf<T>(output, batch, head),
                  heads.sums(sumsData, batch, head), weightRows, heads.settings(), scratch);
    for (int64_t i = 0; i < weightRows.rows; ++i) {
      T* const row = weightRows.row(i);
      std::fill(row + heads.visibleKeys(batch, head), row + heads.keys(), T(0));
    }
  });
  return {likeGiven(output, given.query),
          needsWeights ? likeGiven(weights, given.query) : at::Tensor(), sums};
}

template <typename T>
CpuAttentionGradients backwardOf(const at::Tensor& gradOutput, const at::Tensor& gradWeights,
                                 const CpuAttention& given, const at::Tensor& sums) {
  const Heads<T> heads(given);
  const auto upstream = gradOutput.defined()
                            ? headed(gradOutput)
                            : at::zeros_like(emptyRowsLike(heads.query(), heads.value().size(3)));
  const auto weightsUpstream = gradWeights.defined() ? headed(gradWeights) : gradWeights;
  const auto gradQuery = emptyRowsLike(heads.query(), heads.query().size(3));
  const auto gradKey = emptyRowsLike(heads.key(), heads.key().size(3));
  const auto gradValue = emptyRowsLike(heads.value(), heads.value().size(3));
  const T* const sumsData = sums.const_data_ptr<T>();
  heads.forEach([&](int64_t batch, int64_t head, T* scratch) {
    const auto keyRows = Heads<T>::template rowsOf<T>(gradKey, batch, head);
    const auto valueRows = Heads<T>::template rowsOf<T>(gradValue, batch, head);
    attendHeadBackward<T>(heads.head(batch, head), heads.sums(sumsData, batch, head),
                          Heads<T>::template rowsOf<const T>(upstream, batch, head),
                          Heads<T>::template rowsOf<const T>(weightsUpstream, batch, head),
                          Heads<T>::template rowsOf<T>(gradQuery, batch, head), keyRows, valueRows,
                          heads.settings(), scratch);
    for (int64_t j = heads.visibleKeys(batch, head); j < heads.keys(); ++j) {
      std::fill_n(keyRows.row(j), gradKey.size(3), T(0));
      std::fill_n(valueRows.row(j), gradValue.size(3), T(0));
    }
  });
  return {likeGiven(gradQuery, given.query), likeGiven(gradKey, given.key),
          likeGiven(gradValue, given.value)};
}

}  // namespace

CpuAttentionResult attentionOnCpu(const CpuAttention& inputs, bool needsWeights) {
  return inputs.query.scalar_type() == at::kDouble ? forwardOf<double>(inputs, needsWeights)
                                                   : forwardOf<float>(inputs, needsWeights);
}

CpuAttentionGradients attentionOnCpuBackward(const at::Tensor& gradOutput,
                                             const at::Tensor& gradWeights,
                                             const CpuAttention& inputs, const at::Tensor& sums) {
  return inputs.query.scalar_type() == at::kDouble
             ? backwardOf<double>(gradOutput, gradWeights, inputs, sums)
             : backwardOf<float>(gradOutput, gradWeights, inputs, sums);
}

}  // namespace torchformer::core
