// The device op of core/ops/adam_rows.cc on CUDA.

#include <ATen/ops/sort.h>
#include <c10/core/DeviceGuard.h>

#include <optional>
#include <tuple>

#include "adam_rows_kernel.h"
#include "tensors.h"

namespace torchformer::cuda {

namespace {

void adamRows(const at::Tensor& parameter, const at::Tensor& indices, const at::Tensor& entries,
              bool coalesced, const at::Tensor& expAvg, const at::Tensor& expAvgSq,
              const at::Tensor& touched, const at::Tensor& step,
              const std::optional<at::Tensor>& lrTensor, double lr, double beta1, double beta2,
              double eps) {
  const c10::DeviceGuard guard(parameter.device());
  // Not coalesce(), which synchronizes to get the number of distinct ids.
  auto ids = dense(indices);
  at::Tensor order;
  if (!coalesced) {
    constexpr std::optional<bool> stable = true;
    std::tie(ids, order) = at::sort(ids, stable, /*dim=*/0, /*descending=*/false);
  }
  const auto values = dense(entries);
  check("adam_rows_",
        launchAdamRows({elementOf(parameter.scalar_type()), mutableDataOf(parameter),
                        mutableDataOf(expAvg), mutableDataOf(expAvgSq),
                        touched.mutable_data_ptr<bool>(), ids.const_data_ptr<int64_t>(),
                        order.defined() ? order.const_data_ptr<int64_t>() : nullptr, dataOf(values),
                        step.const_data_ptr<float>(),
                        lrTensor.has_value() ? lrTensor->const_data_ptr<float>() : nullptr, lr,
                        beta1, beta2, eps, parameter.size(0), parameter.size(1), ids.numel()},
                       currentStream(parameter.device())));
}

}  // namespace

void registerAdamRows(torch::Library& library) { library.impl("adam_rows_", TORCH_FN(adamRows)); }

}  // namespace torchformer::cuda
