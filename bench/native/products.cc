// The products of linear layers by every way that this machine has, beside the processor's peak.
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "core/product/processor.h"
#include "core/product/ways.h"
#include "op_call.h"
#include "parts.h"
#include "peak.h"
#include "timing.h"

namespace torchformer::bench {
namespace {

// A product over `tokens` rows of activations with a weight [output, input].
struct Shape {
  std::string layout;
  int64_t tokens, input, output;
};

Shape parseShape(const std::string& text) {
  Shape shape;
  char layout[32];
  if (std::sscanf(text.c_str(), "%31[a-zA-Z]:%ldx%ldx%ld", layout, &shape.tokens, &shape.input,
                  &shape.output) != 4) {
    throw std::invalid_argument("a product must be LAYOUT:TOKENSxINPUTxOUTPUT, got " + text);
  }
  shape.layout = layout;
  return shape;
}

// The factors a and b of a shape, stored as a linear layer stores them.
struct Factors {
  at::Tensor a, b;
  at::Tensor weight;  // of forward products
};

Factors makeFactors(const Shape& shape) {
  const at::Tensor weight = at::randn({shape.output, shape.input});
  const at::Tensor rows = at::randn({shape.tokens, shape.input});
  const at::Tensor upstream = at::randn({shape.tokens, shape.output});
  if (shape.layout == "forward") return {rows, weight.t(), weight};
  if (shape.layout == "inputGradient") return {upstream, weight, {}};
  if (shape.layout == "weightGradient") return {upstream.t(), rows, {}};
  throw std::invalid_argument(
      "the layout of a product must be forward, inputGradient or weightGradient, got " +
      shape.layout);
}

// Fewer rows than this keep the weight packed outside of training.
constexpr int64_t kRowsWithPackedWeight = 256;

// Names for `multiply`; "" is the choice of the package.
std::vector<std::string> findWays(const core::Processor& processor) {
  std::vector<std::string> ways = {"", "mkl"};
  if (at::globalContext().hasMKLDNN()) ways.emplace_back("onednn");
  if (processor.hasAvx2) ways.emplace_back("avx2");
  if (processor.hasAvx512) ways.emplace_back("avx512");
  return ways;
}

// Whether the package multiplies by a library only: then no weight is kept packed.
bool isLibraryForced() {
  const char* const wish = std::getenv("TORCHFORMER_GEMM");
  const std::string way = wish == nullptr ? "" : wish;
  return way == "mkl" || way == "onednn";
}

struct Candidate {
  std::string name;
  std::function<at::Tensor()> multiply;
};

std::vector<Candidate> makeCandidates(const Factors& factors, const std::vector<std::string>& ways,
                                      bool mayPack) {
  std::vector<Candidate> candidates;
  for (const std::string& way : ways) {
    candidates.push_back(
        {way.empty() ? "choice" : way, [=] {
           return callOp("torchformer_device::multiply", {factors.a, factors.b, way})[0].toTensor();
         }});
  }
  if (mayPack && factors.weight.defined() && factors.a.size(0) < kRowsWithPackedWeight) {
    candidates.push_back(
        {"packed",
         [=] { return callOp("torchformer::linear", {factors.a, factors.weight})[0].toTensor(); }});
  }
  return candidates;
}

void printProduct(const Shape& shape, const std::vector<Candidate>& candidates,
                  const at::Tensor& exact, int rounds) {
  const double size = exact.abs().max().item<double>();
  std::vector<double> differences;
  std::vector<Work> works;
  for (const Candidate& candidate : candidates) {
    const double difference = (candidate.multiply() - exact).abs().max().item<double>();
    differences.push_back(difference / size);
    works.push_back([&] { candidate.multiply(); });
  }
  const std::vector<Timing> timings = timingsOf(works, rounds);
  std::printf("{\"layout\":\"%s\",\"tokens\":%ld,\"input\":%ld,\"output\":%ld,\"ways\":{",
              shape.layout.c_str(), shape.tokens, shape.input, shape.output);
  for (size_t i = 0; i < candidates.size(); i++) {
    std::printf("%s\"%s\":{", i == 0 ? "" : ",", candidates[i].name.c_str());
    printTiming("seconds", timings[i]);
    std::printf(",\"difference\":%.3g}", differences[i]);
  }
  std::printf("}}");
}

}  // namespace

void printProducts(int rounds, const std::vector<std::string>& shapes) {
  const at::NoGradGuard noGrad;
  const auto processor = core::examineProcessor();
  std::printf("{\"kind\":\"%s\",\"tokenClasses\":", processor.kind());
  for (size_t i = 0; i < core::tokenClasses.size(); i++) {
    std::printf("%s%ld", i == 0 ? "[" : ",", core::tokenClasses[i]);
  }
  std::printf("],\"products\":");
  const bool mayPack = processor.hasAvx2 && !isLibraryForced();
  const Peaks before = measurePeaks();
  bool first = true;
  for (const std::string& text : shapes) {
    const Shape shape = parseShape(text);
    const Factors factors = makeFactors(shape);
    std::printf("%s", first ? "[" : ",");
    printProduct(shape, makeCandidates(factors, findWays(processor), mayPack),
                 at::mm(factors.a.to(at::kDouble), factors.b.to(at::kDouble)), rounds);
    first = false;
  }
  std::printf("],\"peaks\":");
  printPeaks(before, measurePeaks());
  std::printf("}\n");
}

}  // namespace torchformer::bench
