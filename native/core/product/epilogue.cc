#include "core/product/epilogue.h"

#include <algorithm>

#include "core/loops/for_each_row.h"
#include "core/loops/simd.h"
#include "core/support/dropout_bits.h"

namespace torchformer::core {

namespace {

/// Pointers to the first element of a row, or null.
template <typename T>
struct RowSteps {
  const T* bias;
  const T* positive;
  T scale;
  bool relu;
  bool drops;
  bool dropsAll;
};

template <typename T>
TF_INLINE void finishRow(T* row, int64_t columns, const RowSteps<T>& steps,
                         const RowDropout& dropout, uint32_t firstColumn) {
  if (steps.scale != T(1)) {
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) row[i] *= steps.scale;
  }
  if (steps.bias != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) row[i] += steps.bias[i];
  }
  if (steps.relu) {
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) row[i] = row[i] < T(0) ? T(0) : row[i];
  }
  if (steps.positive != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) row[i] = steps.positive[i] <= T(0) ? T(0) : row[i];
  }
  if (steps.dropsAll) {
    // Not 0 * row, because an element may be infinite.
    for (int64_t i = 0; i < columns; ++i) row[i] = T(0);
  } else if (steps.drops) {
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) {
      row[i] = dropout.keeps(firstColumn + static_cast<uint32_t>(i)) ? row[i] : T(0);
    }
  }
}

template <typename T>
struct TileSteps {
  RowSteps<T> first;  // of the first row
  int64_t stride;     // of `positive`
  uint64_t seed;
  uint32_t threshold;
};

template <typename T>
TF_INLINE void finishRows(const FinishedTile<T>& tile, const TileSteps<T>& steps) {
  RowSteps<T> row = steps.first;
  for (int64_t i = 0; i < tile.rows; ++i) {
    const RowDropout dropout(steps.seed, static_cast<uint64_t>(tile.row + i), steps.threshold);
    finishRow(tile.data + i * tile.stride, tile.columns, row, dropout,
              static_cast<uint32_t>(tile.column));
    if (row.positive != nullptr) row.positive += steps.stride;
  }
}

TF_VECTORIZED void finishTile(const FinishedTile<float>& tile, const TileSteps<float>& steps) {
  finishRows(tile, steps);
}

void finishTile(const FinishedTile<double>& tile, const TileSteps<double>& steps) {
  finishRows(tile, steps);
}

template <typename T>
const T* dataOf(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<T>() : nullptr;
}

at::Tensor contiguous(const at::Tensor& tensor, at::ScalarType dtype) {
  return tensor.defined() ? tensor.to(dtype).contiguous() : tensor;
}

template <typename T>
void finishAll(const at::Tensor& product, const Epilogue& epilogue) {
  const EpilogueSteps<T> steps(epilogue);
  const auto columns = product.size(1);
  auto* data = product.mutable_data_ptr<T>();
  const auto stride = product.stride(0);
  forEachRow({product.size(0), columns},
             [&](int64_t row) { steps({data + row * stride, stride, row, 0, 1, columns}); });
}

}  // namespace

bool Epilogue::isEmpty() const {
  return scale == 1.0 && !bias.defined() && !relu && !positive.defined() && dropoutP == 0;
}

template <typename T>
EpilogueSteps<T>::EpilogueSteps(const Epilogue& epilogue)
    : bias_(contiguous(epilogue.bias, c10::CppTypeToScalarType<T>::value)),
      positive_(contiguous(epilogue.positive, c10::CppTypeToScalarType<T>::value)),
      biasData_(dataOf<T>(bias_)),
      positiveData_(dataOf<T>(positive_)),
      columns_(positive_.defined() ? positive_.size(1) : 0),
      scale_(static_cast<T>(epilogue.scale)),
      relu_(epilogue.relu),
      drops_(epilogue.dropoutP > 0),
      dropsAll_(epilogue.dropoutP >= 1),
      seed_(epilogue.dropoutSeed),
      threshold_(dropThreshold(epilogue.dropoutP)) {}

template <typename T>
void EpilogueSteps<T>::operator()(const FinishedTile<T>& tile) const {
  const auto offset = tile.row * columns_ + tile.column;
  const RowSteps<T> first{biasData_ == nullptr ? nullptr : biasData_ + tile.column,
                          positiveData_ == nullptr ? nullptr : positiveData_ + offset,
                          scale_,
                          relu_,
                          drops_,
                          dropsAll_};
  finishTile(tile, TileSteps<T>{first, columns_, seed_, threshold_});
}

template class EpilogueSteps<float>;
template class EpilogueSteps<double>;

void finish_(const at::Tensor& product, const Epilogue& epilogue) {
  if (epilogue.isEmpty()) return;
  if (product.scalar_type() == at::kDouble) {
    finishAll<double>(product, epilogue);
  } else {
    finishAll<float>(product, epilogue);
  }
}

}  // namespace torchformer::core
