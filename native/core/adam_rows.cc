// Adam for a table of which a step uses few rows.
//
// Purpose: the gradient of an embedding has numbers in the rows that were looked up, and dense Adam
//   spends its time on the others. This one visits the rows that any step so far has used, and its
//   result is that of dense Adam (Kingma and Ba 2015).
// Shapes:  parameter, exp_avg, exp_avg_sq [V, D]; gradient sparse [V, D] with one sparse dimension;
//   touched bool [V].
// Formula, for the rows touched so far, g = 0 in those that this gradient has not:
//   m = b1 m + (1 - b1) g,   v = b2 v + (1 - b2) g^2,
//   w -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps).
//   In a row that no gradient had yet, m = v = 0, and dense Adam leaves it as it is.
// Hazards:
//   - With weight decay every row changes in every step: use dense Adam then.
//   - A row once touched has to be visited for ever: its moments decay and move the weights.
//   - The gradient may hold a row more than once; coalescing adds these up first.

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <string>
#include <vector>

#include "check.h"
#include "ops.h"
#include "simd.h"

namespace torchformer::core {

namespace {

constexpr auto op = "adam_rows_";

struct Settings {
  int64_t step;
  double lr, beta1, beta2, eps;
};

void checkState(const char* name, const at::Tensor& state, const at::Tensor& parameter) {
  checkMatches(op, name, state, "parameter", parameter);
  TF_CHECK(ERR_SHAPE, state.sizes() == parameter.sizes(), op, ": ", name, " must be ",
           parameter.sizes(), " as parameter, got ", state.sizes());
  TF_CHECK(ERR_ARGUMENT, state.is_contiguous(), op, ": ", name, " must be contiguous");
}

void checkArguments(const at::Tensor& parameter, const at::Tensor& gradient,
                    const at::Tensor& expAvg, const at::Tensor& expAvgSq, const at::Tensor& touched,
                    const Settings& settings) {
  checkFloating(op, "parameter", parameter);
  TF_CHECK(ERR_DTYPE,
           parameter.scalar_type() == at::kFloat || parameter.scalar_type() == at::kDouble, op,
           ": parameter must be float32 or float64, got ", parameter.scalar_type());
  TF_CHECK(ERR_SHAPE, parameter.dim() == 2, op, ": parameter must be [V, D], got ",
           parameter.sizes());
  checkState("parameter", parameter, parameter);
  checkState("exp_avg", expAvg, parameter);
  checkState("exp_avg_sq", expAvgSq, parameter);
  TF_CHECK(ERR_ARGUMENT,
           gradient.layout() == at::kSparse && gradient.sparse_dim() == 1 &&
               gradient.sizes() == parameter.sizes(),
           op, ": gradient must be a sparse tensor of ", parameter.sizes(),
           " with one sparse dimension, got ", gradient.layout(), " of ", gradient.sizes());
  TF_CHECK(ERR_DTYPE, gradient.scalar_type() == parameter.scalar_type(), op, ": gradient must be ",
           parameter.scalar_type(), " as parameter, got ", gradient.scalar_type());
  TF_CHECK(ERR_DEVICE, gradient.is_cpu(), op, ": gradient must be on the CPU, got ",
           gradient.device());
  TF_CHECK(ERR_DTYPE, touched.scalar_type() == at::kBool && touched.is_cpu(), op,
           ": touched must be bool on the CPU, got ", touched.scalar_type(), " on ",
           touched.device());
  TF_CHECK(ERR_SHAPE, touched.dim() == 1 && touched.size(0) == parameter.size(0), op,
           ": touched must be [", parameter.size(0), "], got ", touched.sizes());
  TF_CHECK(ERR_ARGUMENT, touched.is_contiguous(), op, ": touched must be contiguous");
  TF_CHECK(ERR_ARGUMENT, settings.step >= 1, op, ": step counts from 1, got ", settings.step);
  for (const double beta : {settings.beta1, settings.beta2}) {
    TF_CHECK(ERR_ARGUMENT, beta >= 0.0 && beta < 1.0, op,
             ": beta1 and beta2 must be from 0 to below 1, got ", beta);
  }
  TF_CHECK(ERR_ARGUMENT, std::isfinite(settings.lr) && settings.eps >= 0.0, op,
           ": lr must be finite and eps at least 0, got ", settings.lr, " and ", settings.eps);
}

/// A sparse tensor can be made without anybody having looked at its indices.
void checkIndices(const at::Tensor& gradient) {
  const at::Tensor indices = gradient._indices();
  if (indices.numel() == 0) return;
  const int64_t least = indices.min().item<int64_t>();
  const int64_t most = indices.max().item<int64_t>();
  TF_CHECK(ERR_INDEX, least >= 0 && most < gradient.size(0), op,
           ": gradient must have indices from 0 to ", gradient.size(0) - 1, ", got ",
           least < 0 ? least : most);
}

/// Numbers of one step in the dtype of the parameter.
template <typename T>
struct Step {
  T beta1, beta2, oneLess1, oneLess2, rate, secondScale, eps;

  explicit Step(const Settings& s)
      : beta1(static_cast<T>(s.beta1)),
        beta2(static_cast<T>(s.beta2)),
        // In double: 1 - 0.999F is off by a hundred-thousandth.
        oneLess1(static_cast<T>(1.0 - s.beta1)),
        oneLess2(static_cast<T>(1.0 - s.beta2)),
        rate(static_cast<T>(s.lr / (1.0 - std::pow(s.beta1, static_cast<double>(s.step))))),
        secondScale(
            static_cast<T>(1.0 / std::sqrt(1.0 - std::pow(s.beta2, static_cast<double>(s.step))))),
        eps(static_cast<T>(s.eps)) {}
};

/// `gradient` null: zeros.
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
                const Settings& settings) {
  const auto rows = parameter.size(0);
  const auto width = parameter.size(1);
  const auto* ids = indices.const_data_ptr<int64_t>();
  const auto* gradients = values.const_data_ptr<T>();
  auto* flags = touched.mutable_data_ptr<bool>();
  // The place of each row in the gradient; -1: not there.
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
  const Step<T> step(settings);
  at::parallel_for(0, static_cast<int64_t>(visited.size()), 32, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto row = visited[static_cast<size_t>(i)];
      const auto place = places[static_cast<size_t>(row)];
      updateRow(weights + row * width, place < 0 ? nullptr : gradients + place * width,
                m + row * width, v + row * width, width, step);
    }
  });
}

void adamRows(const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& expAvg,
              const at::Tensor& expAvgSq, const at::Tensor& touched, int64_t stepNumber, double lr,
              double beta1, double beta2, double eps) {
  const Settings settings{stepNumber, lr, beta1, beta2, eps};
  checkArguments(parameter, gradient, expAvg, expAvgSq, touched, settings);
  TF_CHECK(ERR_ARGUMENT, !(c10::GradMode::is_enabled() && parameter.requires_grad()), op,
           ": a parameter that requires gradients is changed in place: call it under noGrad");
  checkIndices(gradient);
  const auto coalesced = gradient.coalesce();
  const auto indices = coalesced.indices().reshape({-1}).contiguous();
  const auto values = coalesced.values().contiguous();
  if (parameter.scalar_type() == at::kDouble) {
    updateRows<double>(parameter, indices, values, expAvg, expAvgSq, touched, settings);
  } else {
    updateRows<float>(parameter, indices, values, expAvg, expAvgSq, touched, settings);
  }
  // Written behind libtorch's back: a backward pass that saved one of these must notice.
  for (const auto& tensor : {parameter, expAvg, expAvgSq, touched}) {
    tensor.unsafeGetTensorImpl()->bump_version();
  }
}

}  // namespace

void registerAdamRows(torch::Library& library) {
  library.def(
      "adam_rows_(Tensor(a!) parameter, Tensor gradient, Tensor(b!) exp_avg, "
      "Tensor(c!) exp_avg_sq, Tensor(d!) touched, int step, *, float lr, float beta1, "
      "float beta2, float eps) -> ()");
  // One kernel for dense and sparse keys: the gradient is sparse, the rest is not.
  library.impl("adam_rows_",
               torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, TORCH_FN(adamRows)));
}

}  // namespace torchformer::core
