// The last linear layer and the cross-entropy in one.
//
// Purpose: the training loss of a model whose vocabulary is its widest dimension. Logits for all
//   rows would be the largest tensor of the whole step; here they exist for a few rows at a time,
//   and the gradients are made from them while they are at hand.
// Shapes:  input [N, D], weight [V, D], bias [V], target [N] ids -> loss scalar, token losses [N],
//   number of rows whose best logit (the first of equal ones) is the target's (scalar, int64).
// Formula: z = x W^T + b,  t = (1 - s) at the target + s / V everywhere (s: label smoothing, paper
//   section 5.4),  loss of a row = -sum t log softmax(z),  loss = scale * sum over the rows;
//   a row whose target is `ignore_index` counts nothing.
// Backward: dz = scale * (softmax(z) - t),  dx = dz W,  dW = dz^T x,  db = sum dz, all made in the
//   forward pass; what comes from above is one number, which they are multiplied with.
// Saved:   dx, dW, db, and the inputs for a second derivative.
// Hazards:
//   - Softmax and loss are computed in float32 for half types, whose logits would tie.
//   - The ids are checked before the first product: a wrong one would read outside the logits.
//   - `scale` is there because a caller that divides by the number of tokens afterwards would cost
//     one pass over dW, which is as large as the weight. With 1 from above nothing is multiplied.
//   - The gradients belong to the call: a second backward through the same loss gives them again.

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>
#include <tuple>

#include "autograd.h"
#include "check.h"
#include "linear_cross_entropy_kernel.h"
#include "ops.h"
#include "precision.h"
#include "product.h"

namespace torchformer::core {

namespace {

using OptionalTensor = std::optional<at::Tensor>;
using torch::autograd::AutogradContext;

/// Rows whose logits exist at a time. The products are at their fastest from about 256 rows on, and
/// 256 rows of a vocabulary of 150,000 are 150 MB.
constexpr int64_t chunkRows = 256;

/// Columns of logits that one product makes. MKL is half as fast again with 1024 as with all of a
/// vocabulary of 150,000, for the same bits.
constexpr int64_t productColumns = 1024;

/// From one row of logits to the next: rows begin at full vectors, without which MKL loses a
/// quarter of its speed, and not all in the same cache sets.
int64_t rowStride(int64_t classes) {
  const auto aligned = (classes + 15) / 16 * 16;
  return aligned % 1024 == 0 ? aligned + 16 : aligned;
}

struct Settings {
  int64_t ignoreIndex;
  double labelSmoothing;
  double scale;
  Products products;
};

void checkArguments(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                    const at::Tensor& target, const Settings& settings) {
  constexpr auto op = "linear_cross_entropy";
  checkFloating(op, "input", input);
  checkMatches(op, "weight", weight, "input", input);
  TF_CHECK(ERR_SHAPE, input.dim() == 2, op, ": input must be [N, D], got ", input.sizes());
  TF_CHECK(ERR_SHAPE, weight.dim() == 2 && weight.size(1) == input.size(1) && weight.size(0) >= 1,
           op, ": weight must be [V, ", input.size(1), "] for an input of ", input.sizes(),
           ", got ", weight.sizes());
  if (bias.defined()) {
    checkMatches(op, "bias", bias, "input", input);
    TF_CHECK(ERR_SHAPE, bias.dim() == 1 && bias.size(0) == weight.size(0), op, ": bias must be [",
             weight.size(0), "] for a weight of ", weight.sizes(), ", got ", bias.sizes());
  }
  TF_CHECK(ERR_DTYPE, target.layout() == at::kStrided && target.scalar_type() == at::kLong, op,
           ": target must be dense int64 ids, got ", target.scalar_type());
  TF_CHECK(ERR_DEVICE, target.device() == input.device(), op,
           ": target must be on the device of input (", input.device(), "), got ", target.device());
  TF_CHECK(ERR_SHAPE, target.dim() == 1 && target.size(0) == input.size(0), op,
           ": target must be [", input.size(0), "] for an input of ", input.sizes(), ", got ",
           target.sizes());
  TF_CHECK(ERR_ARGUMENT, settings.labelSmoothing >= 0.0 && settings.labelSmoothing <= 1.0, op,
           ": label_smoothing must be from 0 to 1, got ", settings.labelSmoothing);
  TF_CHECK(ERR_ARGUMENT, std::isfinite(settings.scale), op, ": scale must be finite, got ",
           settings.scale);
}

/// @throws ERR_INDEX for a target that is neither a class nor ignored.
void checkTargets(const at::Tensor& target, int64_t classes, int64_t ignoreIndex) {
  const auto* ids = target.const_data_ptr<int64_t>();
  for (int64_t row = 0; row < target.numel(); ++row) {
    TF_CHECK(ERR_INDEX, (ids[row] >= 0 && ids[row] < classes) || ids[row] == ignoreIndex,
             "linear_cross_entropy: target[", row, "] is ", ids[row], ", but there are ", classes,
             " classes (ignore_index ", ignoreIndex, ")");
  }
}

struct Wanted {
  bool input, weight, bias;
  bool any() const { return input || weight || bias; }
};

struct Result {
  at::Tensor loss, tokenLosses, correct;
  at::Tensor gradInput, gradWeight, gradBias;
};

/// float32 and float64 on the CPU.
template <typename T>
Result chunked(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
               const at::Tensor& target, const Settings& settings, const Wanted& wanted) {
  const auto rows = input.size(0);
  const auto classes = weight.size(0);
  const auto options = input.options();
  Result result;
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
  double lossSum = 0;
  int64_t correctCount = 0;

  // Chunks of equal size: a small last one would cost as much memory traffic as a full one.
  const auto chunks = std::max<int64_t>(1, (rows + chunkRows - 1) / chunkRows);
  const auto perChunk = (rows + chunks - 1) / chunks;
  const auto stride = rowStride(classes);
  const auto buffer = at::empty({perChunk, stride}, options).narrow(1, 0, classes);
  const auto weights = operand(weight, settings.products);
  for (int64_t start = 0; start < rows; start += perChunk) {
    const auto count = std::min(perChunk, rows - start);
    const auto x = operand(input.narrow(0, start, count), settings.products);
    auto logits = buffer.narrow(0, 0, count);
    for (int64_t first = 0; first < classes; first += productColumns) {
      const auto columns = std::min(productColumns, classes - first);
      addProduct_(logits.narrow(1, first, columns), x, weights.narrow(0, first, columns).t(),
                  /*beta=*/0);
    }
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
        const auto found =
            lossOfRow(z, biasData, classes, id, static_cast<T>(settings.labelSmoothing),
                      static_cast<T>(settings.scale), wanted.any());
        losses[start + row] = static_cast<T>(found.loss);
        if (found.correct) correctHere.fetch_add(1, std::memory_order_relaxed);
      }
    });
    correctCount += correctHere.load();
    if (wanted.input || wanted.weight) {
      const auto gradLogits = operand(logits, settings.products);
      if (wanted.input) {
        addProduct_(result.gradInput.narrow(0, start, count), gradLogits, weights, /*beta=*/0);
      }
      if (wanted.weight) {
        addProduct_(result.gradWeight, gradLogits.t(), x, /*beta=*/start == 0 ? 0 : 1);
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

/// The formula in plain ops, on any device. The loss alone is differentiable.
variable_list composed(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                       const at::Tensor& target, const Settings& settings) {
  const auto logits = widened(at::linear(input, weight, bias));
  const auto losses = at::cross_entropy_loss(logits, target, /*weight=*/{}, at::Reduction::None,
                                             settings.ignoreIndex, settings.labelSmoothing);
  const auto counted = target.ne(settings.ignoreIndex);
  const auto correct = logits.detach().argmax(1).eq(target);
  return {losses.sum().mul(settings.scale), losses.detach(), correct.logical_and(counted).sum()};
}

Result forwardPass(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                   const at::Tensor& target, const Settings& settings, const Wanted& wanted) {
  const auto dtype = input.scalar_type();
  // Half types: exact copies in float32, products and softmax there, gradients rounded at the end.
  const auto x = widened(input).contiguous();
  const auto w = widened(weight);
  const auto b = bias.defined() ? widened(bias) : bias;
  auto result = dtype == at::kDouble ? chunked<double>(x, w, b, target, settings, wanted)
                                     : chunked<float>(x, w, b, target, settings, wanted);
  for (auto* gradient : {&result.gradInput, &result.gradWeight, &result.gradBias}) {
    if (gradient->defined()) *gradient = gradient->to(dtype);
  }
  return result;
}

struct LinearCrossEntropyFunction : torch::autograd::Function<LinearCrossEntropyFunction> {
  static variable_list forward(AutogradContext* context, const at::Tensor& input,
                               const at::Tensor& weight, const OptionalTensor& bias,
                               const at::Tensor& target, const Settings& settings) {
    const at::AutoDispatchBelowADInplaceOrView belowAutograd;
    const auto biasOrNone = bias.value_or(at::Tensor());
    const auto result = forwardPass(input, weight, biasOrNone, target, settings,
                                    {input.requires_grad(), weight.requires_grad(),
                                     biasOrNone.defined() && biasOrNone.requires_grad()});
    context->save_for_backward({input, weight, biasOrNone, target});
    context->saved_data["gradients"] = c10::List<std::optional<at::Tensor>>(
        {optional(result.gradInput), optional(result.gradWeight), optional(result.gradBias)});
    context->saved_data["ignore_index"] = settings.ignoreIndex;
    context->saved_data["label_smoothing"] = settings.labelSmoothing;
    context->saved_data["scale"] = settings.scale;
    context->set_materialize_grads(false);
    context->mark_non_differentiable({result.tokenLosses, result.correct});
    return {result.loss, result.tokenLosses, result.correct};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list result(5);
    const auto& upstream = gradients[0];
    if (!upstream.defined()) return result;
    // Also says when the graph is gone already.
    const auto saved = context->get_saved_variables();
    if (c10::GradMode::is_enabled()) {
      const Settings settings{context->saved_data["ignore_index"].toInt(),
                              context->saved_data["label_smoothing"].toDouble(),
                              context->saved_data["scale"].toDouble(), Products::own};
      auto found = differentiableGradients(
          [&](const variable_list& inputs) -> variable_list {
            return {composed(inputs[0], inputs[1], inputs[2], saved[3], settings)[0]};
          },
          {saved[0], saved[1], saved[2]}, {upstream});
      for (size_t i = 0; i < found.size(); ++i) result[i] = std::move(found[i]);
      return result;
    }
    const bool isOne = upstream.item<double>() == 1.0;
    const auto made = context->saved_data["gradients"].toList();
    // Else autograd would copy what it could keep: dW is as large as the weight.
    const bool isLast = !torch::autograd::get_current_graph_task_keep_graph();
    if (isLast) context->saved_data.erase("gradients");
    for (size_t i = 0; i < 3; ++i) {
      const c10::IValue value = isLast ? made.extract(i) : made.get(i);
      if (value.isNone()) continue;
      result[i] = isOne ? value.toTensor() : value.toTensor().mul(upstream);
    }
    return result;
  }

 private:
  static std::optional<at::Tensor> optional(const at::Tensor& tensor) {
    return tensor.defined() ? std::optional(tensor) : std::nullopt;
  }
};

using Triple = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

Triple toTriple(const variable_list& list) { return {list[0], list[1], list[2]}; }

Triple linearCrossEntropy(const at::Tensor& input, const at::Tensor& weight,
                          const OptionalTensor& bias, const at::Tensor& target, int64_t ignoreIndex,
                          double labelSmoothing, double scale, std::string_view products) {
  const Settings settings{ignoreIndex, labelSmoothing, scale,
                          parseProducts("linear_cross_entropy", products)};
  const auto biasOrNone = bias.value_or(at::Tensor());
  checkArguments(input, weight, biasOrNone, target, settings);
  checkTargets(target.contiguous(), weight.size(0), ignoreIndex);
  const auto result = forwardPass(input, weight, biasOrNone, target, settings, {});
  return {result.loss, result.tokenLosses, result.correct};
}

Triple linearCrossEntropyAutograd(const at::Tensor& input, const at::Tensor& weight,
                                  const OptionalTensor& bias, const at::Tensor& target,
                                  int64_t ignoreIndex, double labelSmoothing, double scale,
                                  std::string_view products) {
  const auto biasOrNone = bias.value_or(at::Tensor());
  if (mustRecord({input, weight, biasOrNone})) {
    const Settings settings{ignoreIndex, labelSmoothing, scale,
                            parseProducts("linear_cross_entropy", products)};
    checkArguments(input, weight, biasOrNone, target, settings);
    checkTargets(target.contiguous(), weight.size(0), ignoreIndex);
    return toTriple(LinearCrossEntropyFunction::apply(input, weight, bias, target, settings));
  }
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  return linearCrossEntropy(input, weight, bias, target, ignoreIndex, labelSmoothing, scale,
                            products);
}

Triple linearCrossEntropyReference(const at::Tensor& input, const at::Tensor& weight,
                                   const OptionalTensor& bias, const at::Tensor& target,
                                   int64_t ignoreIndex, double labelSmoothing, double scale,
                                   std::string_view products) {
  const Settings settings{ignoreIndex, labelSmoothing, scale,
                          parseProducts("linear_cross_entropy", products)};
  const auto biasOrNone = bias.value_or(at::Tensor());
  checkArguments(input, weight, biasOrNone, target, settings);
  return toTriple(composed(input, weight, biasOrNone, target, settings));
}

}  // namespace

void registerLinearCrossEntropy(torch::Library& library) {
  const std::string signature =
      "(Tensor input, Tensor weight, Tensor? bias, Tensor target, int ignore_index=-100, "
      "float label_smoothing=0.0, float scale=1.0, *, str products=\"own\") -> (Tensor, Tensor, "
      "Tensor)";
  library.def(("linear_cross_entropy" + signature).c_str());
  library.impl("linear_cross_entropy",
               torch::dispatch(c10::DispatchKey::CPU, TORCH_FN(linearCrossEntropy)));
  library.impl("linear_cross_entropy",
               torch::dispatch(c10::DispatchKey::Autograd, TORCH_FN(linearCrossEntropyAutograd)));
  library.def(("linear_cross_entropy_reference" + signature).c_str());
  library.impl("linear_cross_entropy_reference",
               torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd,
                               TORCH_FN(linearCrossEntropyReference)));
}

}  // namespace torchformer::core
