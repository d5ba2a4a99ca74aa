// Products by a way of the caller's choice, for tests and benchmarks.

#include "core/device/multiply.h"

#include <ATen/ops/empty.h>

#include <string_view>

#include "core/decode/prepared_linear.h"
#include "core/device/device_op.h"
#include "core/product/int8_product.h"
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

/// x [n, k] times W^T, for a weight [m, k] of 8 bits or of bfloat16 as decoding stores it, on
/// `kernel`: "avx2", "vnni", or "bfloat16" for the float kernel of this processor.
at::Tensor multiplyNarrowCpu(const at::Tensor& x, const at::Tensor& weight,
                             std::string_view kernel) {
  const char* const op = "multiply_narrow";
  checkFloating(op, "x", x);
  checkMatches(op, "weight", weight, "x", x);
  TF_CHECK(ERR_SHAPE,
           x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1) && x.size(1) > 0 &&
               weight.size(0) > 0,
           op, ": x must be [n, k] and weight [m, k], got ", x.sizes(), " and ", weight.sizes());
  TF_CHECK(ERR_DTYPE, x.scalar_type() == at::kFloat, op, ": x must be float32");
  const auto rows = x.contiguous();
  const auto result = at::empty({x.size(0), weight.size(0)}, x.options());
  const auto* const from = rows.const_data_ptr<float>();
  auto* const to = result.mutable_data_ptr<float>();
  if (kernel == "bfloat16") {
    const PreparedLinear linear(weight.contiguous(), {}, WeightPrecision::bfloat16);
    linear.apply(from, x.size(0), to, weight.size(0), Then::store);
    return result;
  }
  const auto* const found = int8KernelNamed(op, kernel);
  multiplyInt8(*found, packInt8(*found, weight.contiguous()), from, x.size(0), to, weight.size(0),
               /*bias=*/nullptr, /*relu=*/false, /*adds=*/false);
  return result;
}

at::Tensor multiplyNarrowMeta(const at::Tensor& x, const at::Tensor& weight, std::string_view) {
  return at::empty({x.size(0), weight.size(0)}, x.options());
}

at::Tensor multiplyMeta(const at::Tensor& a, const at::Tensor& b, std::string_view) {
  return at::empty({a.size(0), b.size(1)}, a.options());
}

}  // namespace

void defineMultiplyDeviceOp(torch::Library& library) {
  defineDeviceOp(library, "multiply(Tensor a, Tensor b, str way=\"\") -> Tensor",
                 TORCH_FN(multiplyCpu), TORCH_FN(multiplyMeta));
  defineDeviceOp(library, "multiply_narrow(Tensor x, Tensor weight, str kernel) -> Tensor",
                 TORCH_FN(multiplyNarrowCpu), TORCH_FN(multiplyNarrowMeta));
}

}  // namespace torchformer::core
