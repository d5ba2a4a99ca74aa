#include "dropout_mask.h"

#include <ATen/ops/empty_like.h>

namespace torchformer::core {

at::Tensor drawKept(const at::Tensor& like, double p,
                    const std::optional<at::Generator>& generator) {
  return at::empty_like(like, like.options().dtype(at::kBool)).bernoulli_(1.0 - p, generator);
}

double survivorScale(double p) { return p < 1.0 ? 1.0 / (1.0 - p) : 0.0; }

// A product, not masked_fill: libtorch's kernel for that takes twice as long.
at::Tensor applyKept(const at::Tensor& input, const at::Tensor& kept, double p) {
  return input.mul(kept).mul_(survivorScale(p));
}

}  // namespace torchformer::core
