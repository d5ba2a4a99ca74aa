#include "core/device/linear_cross_entropy.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <tuple>

#include "core/device/device_op.h"
#include "core/loops/softmax_loss.h"
#include "core/support/optional.h"
#include "core/support/precision.h"

namespace torchformer::core {

namespace {

using Six = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

using PassSignature = Six(const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                          const at::Tensor&, int64_t, double, int64_t, double, int64_t, bool, bool,
                          bool);

const DeviceOp<PassSignature>& passOp() {
  static const DeviceOp<PassSignature> op("linear_cross_entropy");
  return op;
}

/// Number of rows whose logits exist at a time. Products reach full speed at about 256 rows, and
/// 256 rows of a vocabulary of 150,000 take 150 MB.
constexpr int64_t chunkRows = 256;

/// Largest weight that is packed once for all chunks, twice: for the logits and for the gradient of
/// the input. A larger one is packed in pieces for each chunk, which costs a tenth of the products
/// but no memory.
constexpr int64_t mostPackedBytes = int64_t{64} << 20;

/// The stride of rows of logits: rows begin at full vectors, without which MKL is 25% slower, and
/// not all in the same cache sets.
int64_t rowStride(int64_t classes) {
  const auto aligned = (classes + 15) / 16 * 16;
  return aligned % 1024 == 0 ? aligned + 16 : aligned;
}

/// float32 and float64 on the CPU.
template <typename T>
LossAndGradients chunked(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                         const at::Tensor& target, const LossSettings& settings,
                         const LossGradientsWanted& wanted) {
  const auto rows = input.size(0);
  const auto classes = weight.size(0);
  const auto options = input.options();
  LossAndGradients result;
  result.tokenLosses = at::zeros({rows}, options);
  if (wanted.input) result.gradInput = at::empty_like(input, at::MemoryFormat::Contiguous);
  if (wanted.weight) {
    result.gradWeight = rows == 0 ? at::zeros({classes, input.size(1)}, options)
                                  : at::empty({classes, input.size(1)}, options);
  }
  if (wanted.bias) result.gradBias = at::zeros({classes}, options);

  const auto ids = target.contiguous();
  const auto* targets = ids.const_data_ptr<int64_t>();
  const auto biases = bias.defined() ? bias.contiguous() : bias;
  const T* biasData = bias.defined() ? biases.const_data_ptr<T>() : nullptr;
  T* losses = result.tokenLosses.mutable_data_ptr<T>();
  const auto smoothed = settings.smoothedTarget(classes);
  double lossSum = 0;
  int64_t correctCount = 0;

  // Chunks of equal size: a small last one would cost as much memory traffic as a full one.
  const auto chunks = std::max<int64_t>(1, (rows + chunkRows - 1) / chunkRows);
  const auto perChunk = (rows + chunks - 1) / chunks;
  const auto stride = rowStride(classes);
  const auto buffer = at::empty({perChunk, stride}, options).narrow(1, 0, classes);
  const auto weights = operand(weight, settings.products);
  const bool fixedRows = settings.products == Products::ownRows;
  ProductUse forLogits{.fixedRows = fixedRows, .layout = ProductLayout::forward};
  ProductUse forInput{.fixedRows = fixedRows};
  if (chunks > 1 && static_cast<int64_t>(weights.nbytes()) <= mostPackedBytes) {
    forLogits.panels = packedFactor(weights.t(), ProductLayout::forward, perChunk);
    if (wanted.input)
      forInput.panels = packedFactor(weights, ProductLayout::inputGradient, perChunk);
  }
  for (int64_t start = 0; start < rows; start += perChunk) {
    const auto count = std::min(perChunk, rows - start);
    const auto x = operand(input.narrow(0, start, count), settings.products);
    auto logits = buffer.narrow(0, 0, count);
    addProduct_(logits, x, weights.t(), /*beta=*/0, forLogits);
    T* data = logits.mutable_data_ptr<T>();
    std::atomic<int64_t> correctHere{0};
    at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        T* const z = data + row * stride;
        const auto id = targets[start + row];
        if (id == settings.ignoreIndex) {
          if (wanted.any()) std::fill(z, z + classes, T(0));
          continue;
        }
        const auto found = lossOfRow(z, biasData, classes, id, smoothed,
                                     static_cast<T>(settings.scale), wanted.any());
        losses[start + row] = static_cast<T>(found.loss);
        if (found.correct) correctHere.fetch_add(1, std::memory_order_relaxed);
      }
    });
    correctCount += correctHere.load();
    if (wanted.input || wanted.weight) {
      const auto gradLogits = operand(logits, settings.products);
      if (wanted.input) {
        addProduct_(result.gradInput.narrow(0, start, count), gradLogits, weights, /*beta=*/0,
                    forInput);
      }
      if (wanted.weight) {
        addProduct_(result.gradWeight, gradLogits.t(), x, /*beta=*/start == 0 ? 0 : 1,
                    {.fixedRows = fixedRows});
      }
    }
    if (wanted.bias) {
      T* sums = result.gradBias.mutable_data_ptr<T>();
      at::parallel_for(0, classes, 4096, [&](int64_t begin, int64_t end) {
        for (int64_t row = 0; row < count; ++row) {
          addRow(sums + begin, data + row * stride + begin, end - begin);
        }
      });
    }
  }
  for (int64_t row = 0; row < rows; ++row) lossSum += static_cast<double>(losses[row]);
  result.loss = at::scalar_tensor(lossSum * settings.scale, options);
  result.correct = at::scalar_tensor(correctCount, options.dtype(at::kLong));
  return result;
}

/// A weight as the factor of products with `input`, rounded to its dtype.
at::Tensor asFactor(const at::Tensor& weight, const at::Tensor& input) {
  // Half types: exact copies in float32.
  return widened(weight.to(input.scalar_type()));
}

Six passCpu(const at::Tensor& input, const at::Tensor& weight, const OptionalTensor& bias,
            const at::Tensor& target, int64_t ignoreIndex, double labelSmoothing,
            int64_t smoothingForm, double scale, int64_t products, bool wantsInput,
            bool wantsWeight, bool wantsBias) {
  const LossSettings settings{ignoreIndex, labelSmoothing,
                              static_cast<SmoothingForm>(smoothingForm), scale,
                              static_cast<Products>(products)};
  const LossGradientsWanted wanted{wantsInput, wantsWeight, wantsBias};
  // Half types: products and softmax in float32, gradients rounded at the end.
  const auto x = widened(input).contiguous();
  const auto w = asFactor(weight, input);
  const auto b = bias.has_value() ? widened(*bias) : at::Tensor();
  const auto found = x.scalar_type() == at::kDouble
                         ? chunked<double>(x, w, b, target, settings, wanted)
                         : chunked<float>(x, w, b, target, settings, wanted);
  return {found.loss,
          found.tokenLosses,
          found.correct,
          narrowed(found.gradInput, input),
          narrowed(found.gradWeight, weight),
          narrowed(found.gradBias, bias.has_value() ? *bias : input)};
}

Six passMeta(const at::Tensor& input, const at::Tensor& weight, const OptionalTensor& bias,
             const at::Tensor&, int64_t, double, int64_t, double, int64_t, bool wantsInput,
             bool wantsWeight, bool wantsBias) {
  const auto options = input.options();
  const auto losses = options.dtype(isHalf(input) ? at::kFloat : input.scalar_type());
  const auto like = [](bool wanted, const at::Tensor& tensor) {
    return wanted ? at::empty(tensor.sizes(), tensor.options()) : at::Tensor();
  };
  return {at::empty({}, losses),
          at::empty({input.size(0)}, losses),
          at::empty({}, options.dtype(at::kLong)),
          like(wantsInput, input),
          like(wantsWeight, weight),
          like(wantsBias, orNone(bias))};
}

}  // namespace

bool hasLossKernels(const at::Tensor& tensor) { return passOp().isFor(tensor); }

LossAndGradients lossAndGradients(const at::Tensor& input, const at::Tensor& weight,
                                  const at::Tensor& bias, const at::Tensor& target,
                                  const LossSettings& settings, const LossGradientsWanted& wanted) {
  const auto [loss, tokenLosses, correct, gradInput, gradWeight, gradBias] =
      passOp()(input, weight, optional(bias), target, settings.ignoreIndex, settings.labelSmoothing,
               static_cast<int64_t>(settings.smoothingForm), settings.scale,
               static_cast<int64_t>(settings.products), wanted.input, wanted.weight, wanted.bias);
  return {loss, tokenLosses, correct, gradInput, gradWeight, gradBias};
}

void defineLossDeviceOp(torch::Library& library) {
  defineDeviceOp(
      library,
      "linear_cross_entropy(Tensor input, Tensor weight, Tensor? bias, Tensor target, "
      "int ignore_index, float label_smoothing, int smoothing_form, float scale, int products, "
      "bool wants_input, bool wants_weight, bool wants_bias) -> "
      "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
      TORCH_FN(passCpu), TORCH_FN(passMeta));
}

}  // namespace torchformer::core
