// Biases, dropout, activation and gate between the linear layers of a feed-forward network
// (formulas: core/ops/feed_forward.cc), in one pass.
//
// The values for the backward pass are rounded before the activation is computed from them, so that
// forward and backward agree.

#include "activation_dropout_kernel.h"

#include <cmath>
#include <type_traits>

#include "element_pairs.h"
#include "row_grid.h"
#include "width.h"

namespace torchformer::cuda {

namespace {

template <typename C>
TF_DEVICE C gelu(C a) {
  constexpr C rootOfHalf = static_cast<C>(0.70710678118654752440);
  return a * C(0.5) * (C(1) + erf(a * rootOfHalf));
}

template <typename C>
TF_DEVICE C silu(C a) {
  return a / (C(1) + exp(-a));
}

template <typename T>
struct ActivationDropout {
  using C = Compute<T>;

  T* main;
  T* gate;
  T* output;
  const void* bias;
  const void* gateBias;
  bool isBiasWide;
  KernelActivation activation;
  C closedValue;

  template <int Width>
  TF_DEVICE Vector<C, Width> biasAt(const void* from, int64_t column) const {
    if (from == nullptr) return Vector<C, Width>{};
    if constexpr (!std::is_same_v<T, C>) {
      if (isBiasWide) return loaded<Width>(static_cast<const float*>(from) + column);
    }
    return loaded<Width>(static_cast<const T*>(from) + column);
  }
};

template <typename T, int Width>
__global__ void activationDropout(ActivationDropout<T> layer, int64_t rows, int64_t columns,
                                  Dropping dropping) {
  using C = Compute<T>;
  const int64_t column = columnInRowGrid(Width);
  if (column >= columns) return;
  const auto bias = layer.template biasAt<Width>(layer.bias, column);
  const auto gateBias = layer.template biasAt<Width>(layer.gateBias, column);
  const bool isRelu = layer.activation == KernelActivation::relu;
  const bool isGated = layer.activation == KernelActivation::swiglu;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const DroppingRow<C> dropped(dropping, row);
    const auto place = row * columns + column;
    auto a = loaded<Width>(layer.main + place);
    Vector<T, Width> kept;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      C value = a.values[i] + bias.values[i];
      // NaN stays NaN, so that it reaches the loss.
      if (isRelu && value < C(0)) value = C(0);
      if (!dropped.keeps(column + i)) value = layer.closedValue;
      kept.values[i] = narrowed<T>(value);
      a.values[i] = widened(kept.values[i]);
    }
    store(layer.main + place, kept);
    if (isRelu) continue;

    Vector<T, Width> h;
    if (isGated) {
      const auto c = loaded<Width>(layer.gate + place);
      Vector<T, Width> opened;
#pragma unroll
      for (int i = 0; i < Width; ++i) {
        opened.values[i] = narrowed<T>(c.values[i] + gateBias.values[i]);
        h.values[i] = narrowed<T>(silu(a.values[i]) * widened(opened.values[i]));
      }
      if (layer.gateBias != nullptr) store(layer.gate + place, opened);
    } else {
#pragma unroll
      for (int i = 0; i < Width; ++i) h.values[i] = narrowed<T>(gelu(a.values[i]));
    }
    store(layer.output + place, h);
  }
}

template <typename T, int Width>
void launch(const ActivationDropoutArguments& a, void* stream) {
  const ActivationDropout<T> layer{
      static_cast<T*>(a.main),
      static_cast<T*>(a.gate),
      static_cast<T*>(a.output),
      a.bias,
      a.gateBias,
      a.biasType == Element::float32,
      a.activation,
      static_cast<Compute<T>>(a.activation == KernelActivation::relu ? 0.0 : a.closedValue)};
  TF_LAUNCH((activationDropout<T, Width>), rowGrid(a.rows, a.columns, Width), dim3(rowGridThreads),
            stream, layer, a.rows, a.columns, a.dropping);
}

}  // namespace

LaunchError launchActivationDropout(const ActivationDropoutArguments& a, void* stream) {
  if (a.rows == 0 || a.columns == 0) return nullptr;
  return forElements(a.type, [&]<typename T>() {
    if (fitsWidth<4>(a.columns, a.main, a.gate, a.output, a.bias, a.gateBias)) {
      launch<T, 4>(a, stream);
    } else {
      launch<T, 1>(a, stream);
    }
  });
}

}  // namespace torchformer::cuda
