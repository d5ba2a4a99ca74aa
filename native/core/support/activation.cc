#include "core/support/activation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>

#include <string>

#include "core/support/check.h"

namespace torchformer::core {

Activation parseActivation(const char* op, std::string_view name) {
  if (name == "relu") return Activation::relu;
  if (name == "gelu") return Activation::gelu;
  TF_CHECK(ERR_ARGUMENT, name == "swiglu", op,
           ": activation must be 'relu', 'gelu' or 'swiglu', got '", std::string(name), "'");
  return Activation::swiglu;
}

at::Tensor activate(Activation activation, const at::Tensor& a, const at::Tensor& c) {
  switch (activation) {
    case Activation::relu:
      return at::relu(a);
    case Activation::gelu:
      return at::gelu(a);
    default:
      return at::silu(a) * c;
  }
}

}  // namespace torchformer::core
