// Adam for a table of which each step uses few rows.
//
// Purpose: the gradient of an embedding is nonzero only in the rows that were looked up, but dense
//   Adam spends its time on the others. This op visits only the rows used by any step so far, with
//   the same result as dense Adam (Kingma and Ba 2015).
// Shapes:  parameter, exp_avg, exp_avg_sq [V, D]; gradient sparse [V, D] with one sparse dimension;
//   touched bool [V].
// Formula, for the rows touched so far, with g = 0 in rows that this gradient does not have:
//   m = b1 m + (1 - b1) g,   v = b2 v + (1 - b2) g^2,
//   w -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps).
//   In a row that no gradient has had yet, m = v = 0, and dense Adam leaves it unchanged.
// Hazards:
//   - With weight decay every row changes in every step, so dense Adam is needed.
//   - A touched row must be visited in all later steps: its moments decay and move the weights.
//   - The gradient may contain a row more than once; its entries are summed first.
//   - The step number is a tensor, and the learning rate may be one: reading them does not
//     synchronize with a GPU, and a captured graph can be replayed with new values. On a GPU
//     neither the step nor the indices are checked; an index out of range is skipped.

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/device/device_op.h"
#include "core/loops/simd.h"
#include "core/ops/ops.h"
#include "core/support/check.h"
#include "core/support/optional.h"

namespace torchformer::core {

namespace {

constexpr auto adamRowsName = "adam_rows_";

/// Parameter, ids [n] and values [n, D] of the gradient, whether the ids ascend without repeats,
/// moments, touched, step, learning rate as a tensor or as a number, betas and eps.
using Signature = void(const at::Tensor&, const at::Tensor&, const at::Tensor&, bool,
                       const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                       const OptionalTensor&, double, double, double, double);

const DeviceOp<Signature>& deviceOp() {
  static const DeviceOp<Signature> op("adam_rows_");
  return op;
}

/// The tensors of one call.
struct AdamRowsTensors {
  at::Tensor parameter, gradient, expAvg, expAvgSq, touched, step;
  OptionalTensor lr;
};

struct Settings {
  double lr, beta1, beta2, eps;
};

void checkState(const char* name, const at::Tensor& state, const at::Tensor& parameter) {
  checkMatches(adamRowsName, name, state, "parameter", parameter);
  TF_CHECK(ERR_SHAPE, state.sizes() == parameter.sizes(), adamRowsName, ": ", name, " must be ",
           parameter.sizes(), " as parameter, got ", state.sizes());
  TF_CHECK(ERR_ARGUMENT, state.is_contiguous(), adamRowsName, ": ", name, " must be contiguous");
}

/// @throws unless `tensor` is one float32 number beside the parameter
void checkNumber(const char* name, const at::Tensor& tensor, const at::Tensor& parameter) {
  TF_CHECK(ERR_DTYPE, tensor.layout() == at::kStrided && tensor.scalar_type() == at::kFloat,
           adamRowsName, ": ", name, " must be a float32 tensor, got ", tensor.scalar_type());
  TF_CHECK(ERR_SHAPE, tensor.numel() == 1, adamRowsName, ": ", name, " must have one element, got ",
           tensor.sizes());
  TF_CHECK(ERR_DEVICE, tensor.device() == parameter.device(), adamRowsName, ": ", name,
           " must be on the device of parameter (", parameter.device(), "), got ", tensor.device());
}

void checkArguments(const AdamRowsTensors& tensors, const Settings& settings) {
  const auto& parameter = tensors.parameter;
  const auto& gradient = tensors.gradient;
  const auto& touched = tensors.touched;
  checkFloating(adamRowsName, "parameter", parameter);
  TF_CHECK(ERR_DTYPE,
           parameter.scalar_type() == at::kFloat || parameter.scalar_type() == at::kDouble,
           adamRowsName, ": parameter must be float32 or float64, got ", parameter.scalar_type());
  TF_CHECK(ERR_SHAPE, parameter.dim() == 2, adamRowsName, ": parameter must be [V, D], got ",
           parameter.sizes());
  checkState("parameter", parameter, parameter);
  checkState("exp_avg", tensors.expAvg, parameter);
  checkState("exp_avg_sq", tensors.expAvgSq, parameter);
  TF_CHECK(ERR_ARGUMENT,
           gradient.layout() == at::kSparse && gradient.sparse_dim() == 1 &&
               gradient.sizes() == parameter.sizes(),
           adamRowsName, ": gradient must be a sparse tensor of ", parameter.sizes(),
           " with one sparse dimension, got ", gradient.layout(), " of ", gradient.sizes());
  TF_CHECK(ERR_DTYPE, gradient.scalar_type() == parameter.scalar_type(), adamRowsName,
           ": gradient must be ", parameter.scalar_type(), " as parameter, got ",
           gradient.scalar_type());
  TF_CHECK(ERR_DEVICE, gradient.device() == parameter.device(), adamRowsName,
           ": gradient must be on the device of parameter (", parameter.device(), "), got ",
           gradient.device());
  TF_CHECK(ERR_DTYPE, touched.layout() == at::kStrided && touched.scalar_type() == at::kBool,
           adamRowsName, ": touched must be bool, got ", touched.scalar_type());
  TF_CHECK(ERR_DEVICE, touched.device() == parameter.device(), adamRowsName,
           ": touched must be on the device of parameter (", parameter.device(), "), got ",
           touched.device());
  TF_CHECK(ERR_SHAPE, touched.dim() == 1 && touched.size(0) == parameter.size(0), adamRowsName,
           ": touched must be [", parameter.size(0), "], got ", touched.sizes());
  TF_CHECK(ERR_ARGUMENT, touched.is_contiguous(), adamRowsName, ": touched must be contiguous");
  checkNumber("step", tensors.step, parameter);
  if (tensors.lr.has_value()) checkNumber("lr", *tensors.lr, parameter);
  for (const double beta : {settings.beta1, settings.beta2}) {
    TF_CHECK(ERR_ARGUMENT, beta >= 0.0 && beta < 1.0, adamRowsName,
             ": beta1 and beta2 must be from 0 to below 1, got ", beta);
  }
  TF_CHECK(ERR_ARGUMENT, std::isfinite(settings.lr) && settings.eps >= 0.0, adamRowsName,
           ": lr must be finite and eps at least 0, got ", settings.lr, " and ", settings.eps);
  TF_CHECK(ERR_NOT_IMPLEMENTED, deviceOp().isFor(parameter), adamRowsName, " has no kernel for ",
           parameter.device(),
           ": libtorchformer_cuda is not open. Use an Embedding without sparse gradients");
}

void checkNumbers(const AdamRowsTensors& tensors) {
  const auto step = tensors.step.item<double>();
  TF_CHECK(ERR_ARGUMENT, step >= 1.0, adamRowsName, ": step counts from 1, got ", step);
  const auto lr = tensors.lr.has_value() ? tensors.lr->item<double>() : 0.0;
  TF_CHECK(ERR_ARGUMENT, std::isfinite(lr), adamRowsName, ": lr must be finite, got ", lr);
}

/// A sparse tensor can be constructed without a check of its indices.
void checkIndices(const at::Tensor& gradient) {
  const at::Tensor indices = gradient._indices();
  if (indices.numel() == 0) return;
  const int64_t least = indices.min().item<int64_t>();
  const int64_t most = indices.max().item<int64_t>();
  TF_CHECK(ERR_INDEX, least >= 0 && most < gradient.size(0), adamRowsName,
           ": gradient must have indices from 0 to ", gradient.size(0) - 1, ", got ",
           least < 0 ? least : most);
}

/// Constants of one step in the dtype of the parameter.
template <typename T>
struct Step {
  T beta1, beta2, oneLess1, oneLess2, rate, secondScale, eps;

  Step(double number, const Settings& s)
      : beta1(static_cast<T>(s.beta1)),
        beta2(static_cast<T>(s.beta2)),
        // In double: 1 - 0.999F has a relative error of 1e-5.
        oneLess1(static_cast<T>(1.0 - s.beta1)),
        oneLess2(static_cast<T>(1.0 - s.beta2)),
        rate(static_cast<T>(s.lr / (1.0 - std::pow(s.beta1, number)))),
        secondScale(static_cast<T>(1.0 / std::sqrt(1.0 - std::pow(s.beta2, number)))),
        eps(static_cast<T>(s.eps)) {}
};

/// If `gradient` is null, it is zero.
template <typename T>
TF_INLINE void updateLoop(T* weights, const T* gradient, T* m, T* v, int64_t size,
                          const Step<T>& step) {
  if (gradient != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) {
      const T g = gradient[i];
      m[i] = step.beta1 * m[i] + step.oneLess1 * g;
      v[i] = step.beta2 * v[i] + step.oneLess2 * g * g;
      weights[i] -= step.rate * m[i] / (std::sqrt(v[i]) * step.secondScale + step.eps);
    }
  } else {
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) {
      m[i] *= step.beta1;
      v[i] *= step.beta2;
      weights[i] -= step.rate * m[i] / (std::sqrt(v[i]) * step.secondScale + step.eps);
    }
  }
}

TF_VECTORIZED void updateRow(float* weights, const float* gradient, float* m, float* v,
                             int64_t size, const Step<float>& step) {
  updateLoop(weights, gradient, m, v, size, step);
}

void updateRow(double* weights, const double* gradient, double* m, double* v, int64_t size,
               const Step<double>& step) {
  updateLoop(weights, gradient, m, v, size, step);
}

template <typename T>
void updateRows(const at::Tensor& parameter, const at::Tensor& indices, const at::Tensor& values,
                const at::Tensor& expAvg, const at::Tensor& expAvgSq, const at::Tensor& touched,
                const Step<T>& step) {
  const auto rows = parameter.size(0);
  const auto width = parameter.size(1);
  const auto* ids = indices.const_data_ptr<int64_t>();
  const auto* gradients = values.const_data_ptr<T>();
  auto* flags = touched.mutable_data_ptr<bool>();
  // The index of each row in the gradient, or -1 if it is not there.
  std::vector<int64_t> places(static_cast<size_t>(rows), -1);
  for (int64_t i = 0; i < indices.numel(); ++i) {
    places[static_cast<size_t>(ids[i])] = i;
    flags[ids[i]] = true;
  }
  std::vector<int64_t> visited;
  for (int64_t row = 0; row < rows; ++row) {
    if (flags[row]) visited.push_back(row);
  }
  auto* weights = parameter.mutable_data_ptr<T>();
  auto* m = expAvg.mutable_data_ptr<T>();
  auto* v = expAvgSq.mutable_data_ptr<T>();
  at::parallel_for(0, static_cast<int64_t>(visited.size()), 32, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto row = visited[static_cast<size_t>(i)];
      const auto place = places[static_cast<size_t>(row)];
      updateRow(weights + row * width, place < 0 ? nullptr : gradients + place * width,
                m + row * width, v + row * width, width, step);
    }
  });
}

void updateCpu(const at::Tensor& parameter, const at::Tensor& ids, const at::Tensor& values,
               bool coalesced, const at::Tensor& expAvg, const at::Tensor& expAvgSq,
               const at::Tensor& touched, const at::Tensor& stepTensor, const OptionalTensor& lr,
               double rate, double beta1, double beta2, double eps) {
  const auto gradient =
      at::_sparse_coo_tensor_unsafe(ids.unsqueeze(0), values, parameter.sizes(),
                                    values.options().layout(at::kSparse), coalesced)
          .coalesce();
  const auto indices = gradient.indices().reshape({-1}).contiguous();
  const auto entries = gradient.values().contiguous();
  const Settings settings{lr.has_value() ? lr->item<double>() : rate, beta1, beta2, eps};
  const auto number = stepTensor.item<double>();
  if (parameter.scalar_type() == at::kDouble) {
    updateRows(parameter, indices, entries, expAvg, expAvgSq, touched,
               Step<double>(number, settings));
  } else {
    updateRows(parameter, indices, entries, expAvg, expAvgSq, touched,
               Step<float>(number, settings));
  }
}

void updateMeta(const at::Tensor&, const at::Tensor&, const at::Tensor&, bool, const at::Tensor&,
                const at::Tensor&, const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                double, double, double, double) {}

void update(const AdamRowsTensors& tensors, const Settings& settings) {
  checkArguments(tensors, settings);
  const auto& [parameter, gradient, expAvg, expAvgSq, touched, step, lr] = tensors;
  TF_CHECK(ERR_ARGUMENT, !(c10::GradMode::is_enabled() && parameter.requires_grad()), adamRowsName,
           ": a parameter that requires gradients is changed in place: call it under noGrad");
  if (parameter.is_cpu()) {
    checkNumbers(tensors);
    checkIndices(gradient);
  }
  {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    deviceOp()(parameter, gradient._indices().reshape({-1}), gradient._values(),
               gradient.is_coalesced(), expAvg, expAvgSq, touched, step, lr, settings.lr,
               settings.beta1, settings.beta2, settings.eps);
  }
  // Written without libtorch's knowledge: a backward pass that saved one of these must fail.
  for (const auto& tensor : {parameter, expAvg, expAvgSq, touched}) {
    tensor.unsafeGetTensorImpl()->bump_version();
  }
}

void adamRows(const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& expAvg,
              const at::Tensor& expAvgSq, const at::Tensor& touched, const at::Tensor& step,
              double lr, double beta1, double beta2, double eps) {
  update({parameter, gradient, expAvg, expAvgSq, touched, step, {}}, {lr, beta1, beta2, eps});
}

void adamRowsTensorLr(const at::Tensor& parameter, const at::Tensor& gradient,
                      const at::Tensor& expAvg, const at::Tensor& expAvgSq,
                      const at::Tensor& touched, const at::Tensor& step, const at::Tensor& lr,
                      double beta1, double beta2, double eps) {
  update({parameter, gradient, expAvg, expAvgSq, touched, step, lr}, {0.0, beta1, beta2, eps});
}

}  // namespace

void defineAdamRowsDeviceOp(torch::Library& library) {
  defineDeviceOp(library,
                 "adam_rows_(Tensor(a!) parameter, Tensor ids, Tensor values, bool coalesced, "
                 "Tensor(b!) exp_avg, Tensor(c!) exp_avg_sq, Tensor(d!) touched, Tensor step, "
                 "Tensor? lr_tensor, float lr, float beta1, float beta2, float eps) -> ()",
                 TORCH_FN(updateCpu), TORCH_FN(updateMeta));
}

void registerAdamRows(torch::Library& library) {
  const auto define = [&](const std::string& name, const std::string& lrType) {
    library.def((name +
                 "(Tensor(a!) parameter, Tensor gradient, Tensor(b!) exp_avg, "
                 "Tensor(c!) exp_avg_sq, Tensor(d!) touched, Tensor step, *, " +
                 lrType + " lr, float beta1, float beta2, float eps) -> ()")
                    .c_str());
  };
  // One kernel for dense and sparse keys: the gradient is sparse, the rest is not.
  constexpr auto key = c10::DispatchKey::CompositeImplicitAutograd;
  define("adam_rows_", "float");
  define("adam_rows_.tensor_lr", "Tensor");
  library.impl("adam_rows_", torch::dispatch(key, TORCH_FN(adamRows)));
  library.impl("adam_rows_.tensor_lr", torch::dispatch(key, TORCH_FN(adamRowsTensorLr)));
}

}  // namespace torchformer::core
