#include "core/device/embed.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <optional>

#include "core/device/device_op.h"
#include "core/device/dropout.h"
#include "core/loops/dropout.h"
#include "core/loops/simd.h"
#include "core/support/dropout_bits.h"
#include "core/support/optional.h"
#include "core/support/precision.h"

namespace torchformer::core {

namespace {

using ForwardSignature = at::Tensor(const at::Tensor&, const at::Tensor&, double,
                                    const OptionalTensor&, const OptionalTensor&, double, int64_t,
                                    const OptionalTensor&);
using BackwardSignature = at::Tensor(const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                                     int64_t, int64_t, double, double, int64_t,
                                     const OptionalTensor&);

const DeviceOp<ForwardSignature>& forwardOp() {
  static const DeviceOp<ForwardSignature> op("embed");
  return op;
}

const DeviceOp<BackwardSignature>& backwardOp() {
  static const DeviceOp<BackwardSignature> op("embed_backward");
  return op;
}

/// One row before its dropout; `added` null: nothing.
template <typename T>
TF_INLINE void sumLoop(const T* row, const T* added, T* output, int64_t size, T scale) {
  if (added != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) output[i] = row[i] * scale + added[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) output[i] = row[i] * scale;
  }
}

/// Drops elements of a row in place.
template <typename T>
TF_INLINE void dropLoop(T* row, int64_t size, const RowDropout& dropout, T survivorScale) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    row[i] = dropout.keeps(static_cast<uint32_t>(i)) ? row[i] * survivorScale : T(0);
  }
}

TF_VECTORIZED void sumRow(const float* row, const float* added, float* output, int64_t size,
                          float scale) {
  sumLoop(row, added, output, size, scale);
}

void sumRow(const double* row, const double* added, double* output, int64_t size, double scale) {
  sumLoop(row, added, output, size, scale);
}

TF_VECTORIZED void dropRow(float* row, int64_t size, const RowDropout& dropout, float scale) {
  dropLoop(row, size, dropout, scale);
}

void dropRow(double* row, int64_t size, const RowDropout& dropout, double scale) {
  dropLoop(row, size, dropout, scale);
}

template <typename T>
void embedAll(const at::Tensor& weight, const at::Tensor& ids, double scale,
              const at::Tensor& table, const at::Tensor& positions, double p, uint64_t seed,
              const at::Tensor& output) {
  const auto width = weight.size(1);
  const auto* weights = weight.const_data_ptr<T>();
  const auto* idData = ids.const_data_ptr<int64_t>();
  const auto* tableData = table.defined() ? table.const_data_ptr<T>() : nullptr;
  const auto* places = table.defined() ? positions.const_data_ptr<int64_t>() : nullptr;
  auto* out = output.mutable_data_ptr<T>();
  const auto threshold = dropThreshold(p);
  const auto survivors = static_cast<T>(survivorScale(p));
  const auto grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, width));
  at::parallel_for(0, ids.numel(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      T* const to = out + row * width;
      if (p >= 1.0) {
        // Not 0 * a number that may be infinite.
        std::fill(to, to + width, T(0));
        continue;
      }
      sumRow(weights + idData[row] * width,
             tableData == nullptr ? nullptr : tableData + places[row] * width, to, width,
             static_cast<T>(scale));
      if (p > 0.0) {
        dropRow(to, width, RowDropout(seed, static_cast<uint64_t>(row), threshold), survivors);
      }
    }
  });
}

at::Tensor forwardCpu(const at::Tensor& weight, const at::Tensor& ids, double scale,
                      const OptionalTensor& table, const OptionalTensor& positions, double p,
                      int64_t seed, const OptionalTensor& slot) {
  const auto places = positions.has_value() ? positions->contiguous() : at::Tensor();
  if (isHalf(weight)) {
    // Exact copies of the rows in float32, rounded at the end.
    auto rows = widened(weight.index_select(0, ids)).mul_(scale);
    if (table.has_value()) rows.add_(table->index_select(0, places));
    return (p > 0.0 ? dropRows(rows, p, seedOf(seed, slot)) : rows).to(weight.scalar_type());
  }
  const auto rows = weight.contiguous();
  const auto added = table.has_value() ? table->contiguous() : at::Tensor();
  const auto output = at::empty({ids.numel(), weight.size(1)}, weight.options());
  const auto idRow = ids.contiguous();
  if (weight.scalar_type() == at::kDouble) {
    embedAll<double>(rows, idRow, scale, added, places, p, p > 0.0 ? seedOf(seed, slot) : 0,
                     output);
  } else {
    embedAll<float>(rows, idRow, scale, added, places, p, p > 0.0 ? seedOf(seed, slot) : 0, output);
  }
  return output;
}

at::Tensor forwardMeta(const at::Tensor& weight, const at::Tensor& ids, double,
                       const OptionalTensor&, const OptionalTensor&, double, int64_t,
                       const OptionalTensor&) {
  return at::empty({ids.numel(), weight.size(1)}, weight.options());
}

at::Tensor backwardCpu(const at::Tensor& gradOutput, const at::Tensor&, const OptionalTensor&,
                       int64_t, int64_t, double scale, double p, int64_t seed,
                       const OptionalTensor& slot) {
  const auto upstream = widened(gradOutput);
  const auto dropped = p > 0.0 ? dropRows(upstream, p, seedOf(seed, slot)) : upstream;
  if (scale == 1.0) return dropped.to(gradOutput.scalar_type());
  const bool isOwn = !dropped.is_same(gradOutput);
  return (isOwn ? dropped.mul_(scale) : dropped.mul(scale)).to(gradOutput.scalar_type());
}

at::Tensor backwardMeta(const at::Tensor& gradOutput, const at::Tensor&, const OptionalTensor&,
                        int64_t, int64_t, double, double, int64_t, const OptionalTensor&) {
  return at::empty(gradOutput.sizes(), gradOutput.options());
}

}  // namespace

at::Tensor embedForward(const at::Tensor& weight, const at::Tensor& table, const EmbedRows& rows) {
  return forwardOp()(weight, rows.ids, rows.scale, optional(table), optional(rows.positions),
                     rows.dropoutP, rows.seed.number, rows.seed.optionalSlot());
}

at::Tensor embedBackward(const at::Tensor& gradOutput, const EmbedRows& rows, int64_t vocabulary,
                         int64_t positions) {
  return backwardOp()(gradOutput, rows.ids, optional(rows.positions), vocabulary, positions,
                      rows.scale, rows.dropoutP, rows.seed.number, rows.seed.optionalSlot());
}

bool hasEmbedKernels(const at::Tensor& tensor) { return forwardOp().isFor(tensor); }

void defineEmbedDeviceOps(torch::Library& library) {
  defineDeviceOp(library,
                 "embed(Tensor weight, Tensor ids, float scale, Tensor? table, Tensor? positions, "
                 "float p, int seed, Tensor? slot) -> Tensor",
                 TORCH_FN(forwardCpu), TORCH_FN(forwardMeta));
  defineDeviceOp(library,
                 "embed_backward(Tensor grad_output, Tensor ids, Tensor? positions, "
                 "int vocabulary, int position_count, float scale, float p, int seed, "
                 "Tensor? slot) -> Tensor",
                 TORCH_FN(backwardCpu), TORCH_FN(backwardMeta));
}

}  // namespace torchformer::core
