#include <ATen/Context.h>
#include <ATen/Functions.h>

#include <cstdio>

#include "op_call.h"
#include "parts.h"
#include "timing.h"

namespace torchformer::bench {
namespace {

struct Product {
  const char* what;
  int64_t rows, inner, columns;
  // Products of this shape that run one after another.
  int count;
};

// About as many rows as 50 sentences have tokens, rounded up to a multiple of 32.
constexpr Product kProducts[] = {
    {"attention, one of Q, K, V", 800, 512, 512, 1},
    {"Q, K and V one by one", 800, 512, 512, 3},
    {"Q, K and V as one", 800, 512, 1536, 1},
    {"feed-forward, first", 800, 512, 2048, 1},
    {"feed-forward, second", 800, 2048, 512, 1},
    {"generator, V 8,000", 800, 512, 8000, 1},
    {"its gradient of the input", 800, 8000, 512, 1},
    {"its gradient of the weight", 8000, 800, 512, 1},
    {"generator, V 151,643, 256 rows", 256, 512, 151643, 1},
};

// The entry point to oneDNN's float32 products, which takes the second matrix transposed.
at::Tensor oneDnnProduct(const at::Tensor& a, const at::Tensor& weight) {
  return callOp("mkldnn::_linear_pointwise",
                {a, weight, c10::IValue(), "none", c10::List<std::optional<at::Scalar>>(), ""})[0]
      .toTensor();
}

}  // namespace

void printProducts(int rounds) {
  const at::NoGradGuard noGrad;
  bool first = true;
  for (const Product& product : kProducts) {
    const at::Tensor a = at::randn({product.rows, product.inner});
    const at::Tensor weight = at::randn({product.columns, product.inner});
    const auto repeated = [&](auto multiply) {
      return [&, multiply] {
        for (int i = 0; i < product.count; i++) multiply();
      };
    };
    std::vector<Work> works = {repeated([&] { at::mm(a, weight.t()); })};
    const bool hasOneDnn = at::globalContext().hasMKLDNN();
    if (hasOneDnn) works.push_back(repeated([&] { oneDnnProduct(a, weight); }));
    const std::vector<Timing> timings = timingsOf(works, rounds);
    const double work = 2.0 * static_cast<double>(product.rows * product.inner) *
                        static_cast<double>(product.columns * product.count);
    std::printf("%s{\"what\":\"%s\",\"shape\":[%ld,%ld,%ld],\"count\":%d,\"operations\":%.6g,",
                first ? "[" : ",", product.what, product.rows, product.inner, product.columns,
                product.count, work);
    printTiming("mkl", timings[0]);
    if (hasOneDnn) {
      std::printf(",");
      printTiming("oneDnn", timings[1]);
    }
    std::printf("}");
    first = false;
  }
  std::printf("]");
}

}  // namespace torchformer::bench
