#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace torchformer::core {

/// The activation between the linear layers of a feed-forward network.
enum class Activation : int64_t {
  relu,    // max(a, 0), the paper's
  gelu,    // a * Phi(a) with the normal distribution itself, not its tanh approximation
  swiglu,  // silu(a) * c, gated by the output c of a second linear layer (Shazeer, 2020)
};

/// "relu", "gelu" or "swiglu"; anything else is an ERR_ARGUMENT. `op` is for the message.
Activation parseActivation(const char* op, std::string_view name);

/// A value of `a` for which gelu(a), silu(a) and their slopes are exactly 0, in every dtype and on
/// every device: exp(-1024) underflows even in float64. A power of two, exact in half types.
constexpr double closedValue = -1024.0;

/// Activation of `a`, gated by `c` for swiglu (else undefined). Returns a new tensor;
/// differentiable.
at::Tensor activate(Activation activation, const at::Tensor& a, const at::Tensor& c);

}  // namespace torchformer::core
