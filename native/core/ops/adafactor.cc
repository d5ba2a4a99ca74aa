// Adafactor, the optimizer whose state for a matrix is one number a row and one a column (Shazeer
// and Stern 2018), in PyTorch's form (torch.optim.Adafactor).
//
// Purpose: Adam's two moments take twice the memory of the weights; this state takes none that
// counts.
//   The formula in plain ops needs a temporary of the size of the parameter, and reads the gradient
//   six times; here it is read three times, and the temporaries are vectors.
// Shapes:  parameter, gradient [..., R, C]: row_var [..., R, 1], col_var [..., 1, C];
//   or [n] and []: row_var like the parameter, with the square of every element, and no col_var.
//   The gradient of a matrix may be sparse with one sparse dimension: rows that it lacks are zeros.
// Formula, in step t with w = t^beta2_decay:
//   row_var += w (mean of g^2 over the row - row_var),  col_var likewise over the column,
//   V = row_var col_var / max(mean of row_var over the rows, eps1)   (or V = row_var),
//   U = g / sqrt(max(V, eps1^2)),
//   alpha = max(eps2, RMS(parameter)) min(lr, 1 / sqrt(t)) / max(1, RMS(U) / clip_threshold),
//   parameter = (1 - lr weight_decay) parameter - alpha U.
//   `eps1` is the epsilon of the dtype by default. The step number is counted by the caller.
// Hazards:
//   - Sums run over blocks of rows whose number depends on the shape alone, and are added in order:
//     the number of threads does not change the result.
//   - With an eps1 whose square is 0 in float32, 0 / sqrt(0) would be NaN in a row of zeros; the
//     least divisor is the root of the smallest normal number.

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/loops/simd.h"
#include "core/ops/ops.h"
#include "core/support/check.h"
#include "core/support/optional.h"

namespace torchformer::core {

namespace {

constexpr auto adafactorName = "adafactor_";

struct AdafactorTensors {
  at::Tensor parameter, gradient, rowVar, colVar;  // colVar: undefined for vectors
  double step;
};

struct AdafactorSettings {
  double lr, beta2Decay, eps1, eps2, clipThreshold, weightDecay;
};

double epsilonOf(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return std::numeric_limits<double>::epsilon();
    case at::kHalf:
      return 0x1p-10;
    case at::kBFloat16:
      return 0x1p-7;
    default:
      return static_cast<double>(std::numeric_limits<float>::epsilon());
  }
}

double smallestOf(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return std::numeric_limits<double>::min();
    case at::kHalf:
      return 0x1p-14;
    default:
      return static_cast<double>(std::numeric_limits<float>::min());
  }
}

void checkAdafactorState(const char* name, const at::Tensor& state, const at::Tensor& parameter,
                         const std::vector<int64_t>& sizes) {
  checkMatches(adafactorName, name, state, "parameter", parameter);
  TF_CHECK(ERR_SHAPE, state.sizes() == at::IntArrayRef(sizes), adafactorName, ": ", name,
           " must be ", at::IntArrayRef(sizes), " for a parameter of ", parameter.sizes(), ", got ",
           state.sizes());
  TF_CHECK(ERR_ARGUMENT, state.is_contiguous(), adafactorName, ": ", name, " must be contiguous");
}

void checkAdafactor(const AdafactorTensors& tensors, const AdafactorSettings& settings) {
  const auto& parameter = tensors.parameter;
  const auto& gradient = tensors.gradient;
  checkFloating(adafactorName, "parameter", parameter);
  TF_CHECK(ERR_ARGUMENT, parameter.is_contiguous(), adafactorName,
           ": parameter must be contiguous");
  TF_CHECK(ERR_ARGUMENT, !(c10::GradMode::is_enabled() && parameter.requires_grad()), adafactorName,
           ": a parameter that requires gradients is changed in place: call it under noGrad");
  TF_CHECK(ERR_DTYPE, gradient.scalar_type() == parameter.scalar_type(), adafactorName,
           ": gradient must be ", parameter.scalar_type(), " as parameter, got ",
           gradient.scalar_type());
  TF_CHECK(ERR_DEVICE, gradient.device() == parameter.device(), adafactorName,
           ": gradient must be on the device of parameter (", parameter.device(), "), got ",
           gradient.device());
  TF_CHECK(ERR_SHAPE, gradient.sizes() == parameter.sizes(), adafactorName, ": gradient must be ",
           parameter.sizes(), " as parameter, got ", gradient.sizes());
  const bool isRows =
      gradient.layout() == at::kSparse && gradient.sparse_dim() == 1 && gradient.dim() == 2;
  TF_CHECK(ERR_ARGUMENT, gradient.layout() == at::kStrided || isRows, adafactorName,
           ": gradient must be dense, or a sparse matrix with one sparse dimension, got ",
           gradient.layout(), " of ", gradient.sizes());
  auto rows = parameter.sizes().vec();
  auto columns = rows;
  const bool isFactored = rows.size() > 1;
  if (isFactored) {
    rows.back() = 1;
    columns[columns.size() - 2] = 1;
    checkAdafactorState("col_var", tensors.colVar, parameter, columns);
  } else {
    TF_CHECK(ERR_SHAPE, !tensors.colVar.defined(), adafactorName,
             ": col_var is for matrices only, and parameter is ", parameter.sizes());
  }
  checkAdafactorState("row_var", tensors.rowVar, parameter, rows);
  TF_CHECK(ERR_ARGUMENT, tensors.step >= 1.0 && std::isfinite(tensors.step), adafactorName,
           ": step counts from 1, got ", tensors.step);
  TF_CHECK(ERR_ARGUMENT,
           settings.lr >= 0.0 && std::isfinite(settings.lr) && settings.beta2Decay <= 0.0 &&
               std::isfinite(settings.beta2Decay) && std::isfinite(settings.weightDecay),
           adafactorName, ": lr must be at least 0, beta2_decay at most 0, all finite, got ",
           settings.lr, ", ", settings.beta2Decay, " and weight_decay ", settings.weightDecay);
  TF_CHECK(ERR_ARGUMENT,
           settings.eps1 >= 0.0 && settings.eps2 >= 0.0 && std::isfinite(settings.eps2) &&
               settings.clipThreshold > 0.0,
           adafactorName, ": eps1 and eps2 must be at least 0, clip_threshold above 0, got ",
           settings.eps1, ", ", settings.eps2, " and ", settings.clipThreshold);
}

/// min(lr, 1 / sqrt(step))
double relativeRate(const AdafactorSettings& settings, double step) {
  return std::min(settings.lr, 1.0 / std::sqrt(step));
}

/// The formula in plain ops, on any device, without waiting for it.
void composedAdafactor(const AdafactorTensors& tensors, const AdafactorSettings& settings) {
  const auto& [parameter, given, rowVar, colVar, step] = tensors;
  if (parameter.numel() == 0) return;
  const auto gradient = given.is_sparse() ? given.to_dense() : given;
  const auto type = parameter.scalar_type();
  const double weight = std::pow(step, settings.beta2Decay);
  const double least = std::max(settings.eps1 * settings.eps1, smallestOf(type));
  const double rootSize = std::sqrt(static_cast<double>(parameter.numel()));
  auto alpha = at::linalg_vector_norm(parameter)
                   .div_(rootSize)
                   .clamp_min_(settings.eps2)
                   .mul_(relativeRate(settings, step));
  if (settings.weightDecay != 0.0) parameter.mul_(1.0 - settings.lr * settings.weightDecay);
  at::Tensor update;
  if (colVar.defined()) {
    const auto meanSquare = [&](int64_t dim) {
      return at::linalg_vector_norm(gradient, 2, {dim}, /*keepdim=*/true)
          .square_()
          .div_(gradient.size(dim));
    };
    rowVar.lerp_(meanSquare(-1), weight);
    colVar.lerp_(meanSquare(-2), weight);
    const auto mean = rowVar.mean({-2}, /*keepdim=*/true).clamp_min_(settings.eps1);
    update = at::matmul(rowVar.div(mean), colVar);
  } else {
    rowVar.lerp_(gradient.square(), weight);
    update = rowVar.clone();
  }
  update.clamp_min_(least).rsqrt_().mul_(gradient);
  alpha.div_(
      at::linalg_vector_norm(update).div_(rootSize * settings.clipThreshold).clamp_min_(1.0));
  parameter.sub_(update.mul_(alpha));
}

// The loops over one row. Sums are taken in double.

template <typename T>
TF_INLINE double squaresLoop(const T* row, int64_t size) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) {
    const auto value = static_cast<double>(row[i]);
    sum += value * value;
  }
  return sum;
}

/// Adds the squares to the sums of the columns and returns their sum.
template <typename T>
TF_INLINE double squaresByColumnLoop(const T* row, double* columns, int64_t size) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) {
    const auto value = static_cast<double>(row[i]);
    columns[i] += value * value;
    sum += value * value;
  }
  return sum;
}

/// The element of U with a variance that is the product of `scale` and an element of `columns`.
template <typename T>
TF_INLINE T updateOf(T gradient, T scale, T column, T least) {
  const T variance = scale * column;
  return gradient / std::sqrt(variance > least ? variance : least);
}

template <typename T>
TF_INLINE double updateSquaresLoop(const T* gradient, T scale, const T* columns, T least,
                                   int64_t size) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) {
    const auto value = static_cast<double>(updateOf(gradient[i], scale, columns[i], least));
    sum += value * value;
  }
  return sum;
}

template <typename T>
TF_INLINE void updateLoop(T* parameter, const T* gradient, T scale, const T* columns, T least,
                          T keep, T alpha, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    parameter[i] = keep * parameter[i] - alpha * updateOf(gradient[i], scale, columns[i], least);
  }
}

TF_VECTORIZED double squaresOfRow(const float* row, int64_t size) { return squaresLoop(row, size); }
double squaresOfRow(const double* row, int64_t size) { return squaresLoop(row, size); }

TF_VECTORIZED double squaresByColumn(const float* row, double* columns, int64_t size) {
  return squaresByColumnLoop(row, columns, size);
}
double squaresByColumn(const double* row, double* columns, int64_t size) {
  return squaresByColumnLoop(row, columns, size);
}

TF_VECTORIZED double updateSquares(const float* gradient, float scale, const float* columns,
                                   float least, int64_t size) {
  return updateSquaresLoop(gradient, scale, columns, least, size);
}
double updateSquares(const double* gradient, double scale, const double* columns, double least,
                     int64_t size) {
  return updateSquaresLoop(gradient, scale, columns, least, size);
}

TF_VECTORIZED void applyUpdate(float* parameter, const float* gradient, float scale,
                               const float* columns, float least, float keep, float alpha,
                               int64_t size) {
  updateLoop(parameter, gradient, scale, columns, least, keep, alpha, size);
}
void applyUpdate(double* parameter, const double* gradient, double scale, const double* columns,
                 double least, double keep, double alpha, int64_t size) {
  updateLoop(parameter, gradient, scale, columns, least, keep, alpha, size);
}

/// PyTorch's lerp, which is exactly `to` for a weight of 1.
template <typename T>
T interpolated(T from, T to, T weight) {
  return weight < T(0.5) ? from + weight * (to - from) : to - (to - from) * (T(1) - weight);
}

/// Calls `work(block, begin, end)` for consecutive blocks of the rows, whose number depends only on
/// the number of rows.
template <typename Work>
void forBlocks(int64_t rows, int64_t blocks, const Work& work) {
  at::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      work(block, rows * block / blocks, rows * (block + 1) / blocks);
    }
  });
}

int64_t blocksOf(int64_t rows) { return std::clamp<int64_t>(rows / 16, 1, 64); }

double sumOf(const std::vector<double>& parts) {
  double sum = 0;
  for (const double part : parts) sum += part;
  return sum;
}

/// A parameter as a batch of matrices, and the rows of it that have a gradient.
template <typename T>
struct Matrices {
  T* parameter;
  const T* gradient;
  const int64_t* ids;  // the row of each row of the gradient, which is then one matrix; or null
  int64_t count;       // of matrices
  int64_t rows;        // of each
  int64_t columns;
  int64_t given;  // rows of the gradient of each

  int64_t rowOf(int64_t index) const { return ids == nullptr ? index : ids[index]; }
};

template <typename T>
double meanSquare(const Matrices<T>& all) {
  const auto rows = all.count * all.rows;
  const auto blocks = blocksOf(rows);
  std::vector<double> parts(static_cast<size_t>(blocks), 0.0);
  forBlocks(rows, blocks, [&](int64_t block, int64_t begin, int64_t end) {
    double sum = 0;
    for (int64_t row = begin; row < end; ++row) {
      sum += squaresOfRow(all.parameter + row * all.columns, all.columns);
    }
    parts[static_cast<size_t>(block)] = sum;
  });
  return sumOf(parts) / static_cast<double>(rows * all.columns);
}

/// Updates the variances of one matrix.
template <typename T>
void updateVariances(const Matrices<T>& all, const T* gradient, T* rowVar, T* colVar, T weight) {
  const auto blocks = blocksOf(all.given);
  const auto width = static_cast<size_t>(all.columns);
  std::vector<double> columnParts(static_cast<size_t>(blocks) * width, 0.0);
  std::vector<T> rowMeans(static_cast<size_t>(all.rows), T(0));
  forBlocks(all.given, blocks, [&](int64_t block, int64_t begin, int64_t end) {
    double* const sums = columnParts.data() + static_cast<size_t>(block) * width;
    for (int64_t index = begin; index < end; ++index) {
      const double sum = squaresByColumn(gradient + index * all.columns, sums, all.columns);
      rowMeans[static_cast<size_t>(all.rowOf(index))] =
          static_cast<T>(sum / static_cast<double>(all.columns));
    }
  });
  for (int64_t row = 0; row < all.rows; ++row) {
    rowVar[row] = interpolated(rowVar[row], rowMeans[static_cast<size_t>(row)], weight);
  }
  for (size_t column = 0; column < width; ++column) {
    double sum = 0;
    for (size_t block = 0; block < static_cast<size_t>(blocks); ++block) {
      sum += columnParts[block * width + column];
    }
    const auto mean = static_cast<T>(sum / static_cast<double>(all.rows));
    colVar[column] = interpolated(colVar[column], mean, weight);
  }
}

/// The whole step for one parameter; `rowVar` may be null, and `colVar` is then the variance of
/// every column of a single row.
template <typename T>
void fusedAdafactor(const Matrices<T>& all, T* rowVar, T* colVar, double step,
                    const AdafactorSettings& settings) {
  const auto weight = static_cast<T>(std::pow(step, settings.beta2Decay));
  const auto least = static_cast<T>(
      std::max(settings.eps1 * settings.eps1, static_cast<double>(std::numeric_limits<T>::min())));
  double alpha = std::max(settings.eps2, std::sqrt(meanSquare(all))) * relativeRate(settings, step);
  // Of each row of the parameter: what the variance of its columns is multiplied by.
  std::vector<T> scales(static_cast<size_t>(all.count * all.rows), T(1));
  if (rowVar == nullptr) {
    for (int64_t i = 0; i < all.columns; ++i) {
      colVar[i] = interpolated(colVar[i], all.gradient[i] * all.gradient[i], weight);
    }
  }
  for (int64_t matrix = 0; rowVar != nullptr && matrix < all.count; ++matrix) {
    T* const rows = rowVar + matrix * all.rows;
    updateVariances(all, all.gradient + matrix * all.given * all.columns, rows,
                    colVar + matrix * all.columns, weight);
    double sum = 0;
    for (int64_t row = 0; row < all.rows; ++row) sum += static_cast<double>(rows[row]);
    const double mean = std::max(sum / static_cast<double>(all.rows), settings.eps1);
    for (int64_t row = 0; row < all.rows; ++row) {
      scales[static_cast<size_t>(matrix * all.rows + row)] =
          mean > 0.0 ? static_cast<T>(static_cast<double>(rows[row]) / mean) : T(0);
    }
  }
  const auto rows = all.count * all.given;
  const auto blocks = blocksOf(rows);
  // Calls work(row of the parameter, row of the gradient, scale, columns) for the rows of a block.
  const auto forRows = [&](int64_t begin, int64_t end, const auto& work) {
    for (int64_t index = begin; index < end; ++index) {
      const auto matrix = index / all.given;
      const auto row = matrix * all.rows + all.rowOf(index - matrix * all.given);
      work(all.parameter + row * all.columns, all.gradient + index * all.columns,
           scales[static_cast<size_t>(row)], colVar + matrix * all.columns);
    }
  };
  std::vector<double> parts(static_cast<size_t>(blocks), 0.0);
  forBlocks(rows, blocks, [&](int64_t block, int64_t begin, int64_t end) {
    double sum = 0;
    forRows(begin, end, [&](T*, const T* gradient, T scale, const T* columns) {
      sum += updateSquares(gradient, scale, columns, least, all.columns);
    });
    parts[static_cast<size_t>(block)] = sum;
  });
  const auto size = static_cast<double>(all.count * all.rows * all.columns);
  alpha /= std::max(1.0, std::sqrt(sumOf(parts) / size) / settings.clipThreshold);
  auto keep = static_cast<T>(1.0 - settings.lr * settings.weightDecay);
  if (all.ids != nullptr && settings.weightDecay != 0.0) {
    // Rows without a gradient decay too.
    forBlocks(all.rows, blocksOf(all.rows), [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin * all.columns; i < end * all.columns; ++i) all.parameter[i] *= keep;
    });
    keep = T(1);
  }
  const auto step1 = static_cast<T>(alpha);
  forBlocks(rows, blocks, [&](int64_t, int64_t begin, int64_t end) {
    forRows(begin, end, [&](T* parameter, const T* gradient, T scale, const T* columns) {
      applyUpdate(parameter, gradient, scale, columns, least, keep, step1, all.columns);
    });
  });
}

template <typename T>
void fusedAdafactor(const AdafactorTensors& tensors, const AdafactorSettings& settings) {
  const auto& [parameter, given, rowVar, colVar, step] = tensors;
  at::Tensor ids;
  at::Tensor values = given;
  if (given.is_sparse()) {
    const auto coalesced = given.coalesce();
    ids = coalesced.indices().reshape({-1}).contiguous();
    values = coalesced.values();
  }
  values = values.contiguous();
  const bool isFactored = parameter.dim() > 1;
  const auto columns = isFactored ? parameter.size(-1) : parameter.numel();
  const auto rows = isFactored ? parameter.size(-2) : 1;
  const Matrices<T> all{parameter.mutable_data_ptr<T>(),
                        values.const_data_ptr<T>(),
                        ids.defined() ? ids.const_data_ptr<int64_t>() : nullptr,
                        parameter.numel() / (rows * columns),
                        rows,
                        columns,
                        ids.defined() ? ids.numel() : rows};
  auto* const variances = rowVar.mutable_data_ptr<T>();
  fusedAdafactor(all, isFactored ? variances : nullptr,
                 isFactored ? colVar.mutable_data_ptr<T>() : variances, step, settings);
  // Written without libtorch's knowledge: a backward pass that saved one of these must fail.
  for (const auto& tensor : {parameter, rowVar, colVar}) {
    if (tensor.defined()) tensor.unsafeGetTensorImpl()->bump_version();
  }
}

/// A sparse tensor can be constructed without a check of its indices.
void checkGradientRows(const at::Tensor& gradient) {
  if (!gradient.is_sparse() || gradient._nnz() == 0) return;
  const at::Tensor indices = gradient._indices();
  const int64_t least = indices.min().item<int64_t>();
  const int64_t most = indices.max().item<int64_t>();
  TF_CHECK(ERR_INDEX, least >= 0 && most < gradient.size(0), adafactorName,
           ": gradient must have indices from 0 to ", gradient.size(0) - 1, ", got ",
           least < 0 ? least : most);
}

template <bool isReference>
void adafactor(const at::Tensor& parameter, const at::Tensor& gradient, const at::Tensor& rowVar,
               const OptionalTensor& colVar, double step, double lr, double beta2Decay,
               std::optional<double> eps1, double eps2, double clipThreshold, double weightDecay) {
  const AdafactorTensors tensors{parameter, gradient, rowVar, orNone(colVar), step};
  const AdafactorSettings settings{
      lr,   beta2Decay,    eps1.value_or(epsilonOf(parameter.scalar_type())),
      eps2, clipThreshold, weightDecay};
  checkAdafactor(tensors, settings);
  const auto type = parameter.scalar_type();
  const bool isFused = parameter.is_cpu() && (type == at::kFloat || type == at::kDouble);
  if (parameter.is_cpu()) checkGradientRows(gradient);
  if (parameter.numel() == 0) return;
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  if (isReference || !isFused) {
    composedAdafactor(tensors, settings);
  } else if (type == at::kDouble) {
    fusedAdafactor<double>(tensors, settings);
  } else {
    fusedAdafactor<float>(tensors, settings);
  }
}

}  // namespace

void registerAdafactor(torch::Library& library) {
  // One kernel for dense and sparse keys: the gradient may be sparse, the rest is not.
  constexpr auto key = c10::DispatchKey::CompositeImplicitAutograd;
  const auto define = [&](const std::string& name, auto function) {
    library.def((name + "(Tensor(a!) parameter, Tensor gradient, Tensor(b!) row_var, "
                        "Tensor(c!)? col_var, float step, *, float lr, float beta2_decay=-0.8, "
                        "float? eps1=None, float eps2=0.001, float clip_threshold=1.0, "
                        "float weight_decay=0.0) -> ()")
                    .c_str());
    library.impl(name.c_str(), torch::dispatch(key, function));
  };
  define("adafactor_", TORCH_FN(adafactor<false>));
  define("adafactor_reference_", TORCH_FN(adafactor<true>));
}

}  // namespace torchformer::core
