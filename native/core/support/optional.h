#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

// Optional arguments of ops, as the dispatcher passes them.

namespace torchformer::core {

using OptionalGenerator = std::optional<at::Generator>;
using OptionalTensor = std::optional<at::Tensor>;

/// None for an undefined tensor.
inline OptionalTensor optional(const at::Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

/// An undefined tensor for none.
inline at::Tensor orNone(const OptionalTensor& tensor) { return tensor.value_or(at::Tensor()); }

}  // namespace torchformer::core
