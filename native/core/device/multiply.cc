// Products by a way of the caller's choice, for tests and benchmarks.

#include "core/device/multiply.h"

#include <ATen/ops/empty.h>

#include <string_view>

#include "core/device/device_op.h"
#include "core/product/product.h"
#include "core/product/ways.h"
#include "core/support/check.h"

namespace torchformer::core {

namespace {

at::Tensor multiplyCpu(const at::Tensor& a, const at::Tensor& b, std::string_view way) {
  checkFloating("multiply", "a", a);
  checkMatches("multiply", "b", b, "a", a);
  TF_CHECK(ERR_SHAPE, a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0),
           "multiply: a must be [n, k] and b [k, m], got ", a.sizes(), " and ", b.sizes());
  if (way.empty()) return product(a, b, a.scalar_type());
  return productBy(parseWay("multiply", way), a, b);
}

at::Tensor multiplyMeta(const at::Tensor& a, const at::Tensor& b, std::string_view) {
  return at::empty({a.size(0), b.size(1)}, a.options());
}

}  // namespace

void defineMultiplyDeviceOp(torch::Library& library) {
  defineDeviceOp(library, "multiply(Tensor a, Tensor b, str way=\"\") -> Tensor",
                 TORCH_FN(multiplyCpu), TORCH_FN(multiplyMeta));
}

}  // namespace torchformer::core
