// Softmax, loss and gradient of rows of logits (formulas: core/ops/linear_cross_entropy.cc).
//
// A block processes one row, which is as long as the vocabulary, and reads it twice: once for the
//   highest logit and the sum of the exponentials, rescaling the sum whenever a higher logit
//   appears; once to write the gradient, which may overwrite the logits.
// Hazards: infinite logits give NaN, as in the CPU's kernel, which subtracts the highest one.

#include "linear_cross_entropy_kernel.h"

#include <cmath>
#include <limits>

#include "reduce.h"
#include "width.h"

namespace torchformer::cuda {

namespace {

constexpr int threads = 512;
constexpr int width = 4;
constexpr int64_t step = int64_t{threads} * width;
constexpr int64_t nowhere = std::numeric_limits<int64_t>::max();

struct Least {
  TF_DEVICE int64_t operator()(int64_t a, int64_t b) const { return a < b ? a : b; }
};

/// The maximum of numbers without NaN.
struct Highest {
  template <typename T>
  TF_DEVICE T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

/// The statistics of the logits so far.
template <typename C>
struct Seen {
  C highest = -infinity<C>;
  C exponentials = 0;  // sum of exp(logit - highest)
  C sum = 0;
  int64_t first = nowhere;  // the index of the highest, the first of equal ones

  TF_DEVICE void add(C logit, int64_t column) {
    sum += logit;
    if (logit > highest) {
      exponentials = exponentials * exp(highest - logit) + C(1);
      highest = logit;
      first = column;
    } else if (logit == highest) {
      exponentials += C(1);
    } else {
      exponentials += exp(logit - highest);
    }
  }

  /// The sum relative to another highest logit.
  TF_DEVICE C exponentialsBelow(C other) const {
    return highest == other ? exponentials : exponentials * exp(highest - other);
  }
};

template <typename C, typename Gradient>
struct LossRows {
  const C* logits;
  const C* bias;
  const int64_t* target;
  C* losses;
  bool* correct;
  Gradient* gradient;
  int64_t classes;
  int64_t stride;
  int64_t ignoreIndex;
  core::RowTarget<C> smoothed;
  C scale;

  TF_DEVICE C logit(const Vector<C, width>& values, int64_t start, int i) const {
    return bias == nullptr ? values.values[i] : values.values[i] + bias[start + i];
  }
};

template <typename C, typename Gradient>
__global__ void lossOfRows(LossRows<C, Gradient> all) {
  using Block = RowGroup<threads>;
  const int64_t row = blockIdx.x;
  const C* const logits = all.logits + row * all.stride;
  Gradient* const gradient = all.gradient == nullptr ? nullptr : all.gradient + row * all.stride;
  const int64_t begin = int64_t{threadIdx.x} * width;
  const int64_t target = all.target[row];
  const bool isIgnored = target == all.ignoreIndex;
  // This condition is the same for all threads of the block.
  if (isIgnored || target < 0 || target >= all.classes) {
    if (threadIdx.x == 0) {
      all.losses[row] = isIgnored ? C(0) : notANumber<C>;
      all.correct[row] = false;
    }
    if (gradient == nullptr) return;
    Vector<Gradient, width> zeros;
#pragma unroll
    for (int i = 0; i < width; ++i) zeros.values[i] = narrowed<Gradient>(C(0));
    for (int64_t start = begin; start < all.stride; start += step) store(gradient + start, zeros);
    return;
  }

  Seen<C> seen;
  for (int64_t start = begin; start < all.classes; start += step) {
    const auto values = loaded<width>(logits + start);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      if (start + i < all.classes) seen.add(all.logit(values, start, i), start + i);
    }
  }
  const C highest = Block::reduced(seen.highest, Highest{});
  // If it is infinite, the differences from it are NaN.
  const C total = Block::sum(seen.exponentialsBelow(highest)) + (highest - highest);
  const C logitSum = Block::sum(seen.sum);
  const int64_t first = Block::reduced(seen.highest == highest ? seen.first : nowhere, Least{});
  if (threadIdx.x == 0) {
    const C bias = all.bias == nullptr ? C(0) : all.bias[target];
    const C logSum = log(total);
    C sum = logitSum;
    if (all.smoothed.excluded >= 0) {
      const int64_t excluded = all.smoothed.excluded;
      sum -= logits[excluded] + (all.bias == nullptr ? C(0) : all.bias[excluded]);
    }
    // The mean first: the highest times the number of classes would lose digits.
    const C mean = sum / all.smoothed.sharers - highest;
    all.losses[row] = all.smoothed.loss(logSum, logits[target] + bias - highest, mean);
    all.correct[row] = first == target;
  }
  if (gradient == nullptr) return;
  // If the gradient overwrites the logits, that of the target has been read by now.
  __syncthreads();

  const C factor = all.scale / total;
  const C everywhere = all.scale * all.smoothed.everywhere;
  const C atTarget = all.scale * all.smoothed.extra;
  for (int64_t start = begin; start < all.stride; start += step) {
    const auto values = loaded<width>(logits + start);
    Vector<Gradient, width> out;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const int64_t column = start + i;
      C slope = 0;
      if (column < all.classes) {
        slope = exp(all.logit(values, start, i) - highest) * factor - everywhere;
        if (column == target) slope -= atTarget;
        if (column == all.smoothed.excluded) slope += everywhere;
      }
      out.values[i] = narrowed<Gradient>(slope);
    }
    store(gradient + start, out);
  }
}

template <typename C, typename Gradient>
LaunchError launch(const LossRowsArguments& a, void* stream) {
  const LossRows<C, Gradient> all{static_cast<const C*>(a.logits),
                                  static_cast<const C*>(a.bias),
                                  a.target,
                                  static_cast<C*>(a.losses),
                                  a.correct,
                                  static_cast<Gradient*>(a.gradient),
                                  a.classes,
                                  a.stride,
                                  a.ignoreIndex,
                                  core::RowTarget<C>(a.smoothed),
                                  static_cast<C>(a.scale)};
  TF_LAUNCH((lossOfRows<C, Gradient>), dim3(static_cast<unsigned>(a.rows)), dim3(threads), stream,
            all);
  return launchError();
}

}  // namespace

LaunchError launchLossRows(const LossRowsArguments& a, void* stream) {
  using enum Element;
  if (a.rows == 0) return nullptr;
  if (a.logitType == float64) return launch<double, double>(a, stream);
  switch (a.gradientType) {
    case bfloat16:
      return launch<float, Bfloat16>(a, stream);
    case float16:
      return launch<float, Float16>(a, stream);
    default:
      return launch<float, float>(a, stream);
  }
}

}  // namespace torchformer::cuda
