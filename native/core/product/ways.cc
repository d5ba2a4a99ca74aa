#include "core/product/ways.h"

#include <ATen/Context.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "core/product/processor.h"
#include "core/product/tile_kernel.h"
#include "core/support/check.h"

namespace torchformer::core {

namespace {

using WaysByTokens = std::array<Way, tokenClasses.size() + 1>;

struct ProcessorWays {
  const char* kind;
  WaysByTokens forward, inputGradient, weightGradient;
};

constexpr auto own = Way::own;
constexpr auto mkl = Way::mkl;
constexpr auto oneDnn = Way::oneDnn;

// The first row is from `npm run bench -- products` on one such processor: MKL's gradients take 1
// to 9 % less time than ours there, and a fifth less of few rows. The rows of AMD follow from a
// trial of such a kernel on Zen 3, where it made 115 to 169 GFLOP/s beside MKL's 69 to 127 and
// oneDNN's 101 to 136, and await the suite; so does the other row of Intel.
//
// Forward products are our own for any number of rows: a row then gives the same bits in training,
// in evaluation and in decoding. Those of few rows are slower without packed weights, but in
// training the optimizer passes over the weight too, and outside of it the packed weight is kept.
constexpr ProcessorWays table[] = {
    {"Intel with AVX-512",
     {own, own, own, own, own},
     {mkl, mkl, mkl, mkl, mkl},
     {mkl, mkl, mkl, mkl, mkl}},
    {"Intel with AVX2",
     {own, own, own, own, own},
     {mkl, mkl, mkl, own, own},
     {mkl, mkl, mkl, own, own}},
    {"AMD with AVX2",
     {own, own, own, own, own},
     {mkl, oneDnn, oneDnn, own, own},
     {mkl, oneDnn, oneDnn, own, own}},
    {"AMD with AVX-512",
     {own, own, own, own, own},
     {mkl, oneDnn, oneDnn, own, own},
     {mkl, oneDnn, oneDnn, own, own}},
};

/// Without AVX2 there is no kernel of ours.
constexpr ProcessorWays others = {
    "other", {mkl, mkl, mkl, mkl, mkl}, {mkl, mkl, mkl, mkl, mkl}, {mkl, mkl, mkl, mkl, mkl}};

const ProcessorWays& waysOf(const Processor& processor) {
  const std::string_view kind = processor.kind();
  for (const auto& ways : table) {
    if (kind == ways.kind) return ways;
  }
  return others;
}

/// Our kernels on this processor; null without AVX2.
NamedWay ownWay(bool usesAvx512) {
#if defined(__x86_64__)
  if (usesAvx512) return {own, &avx512KernelFloat(), &avx512KernelDouble()};
  return {own, &avx2KernelFloat(), &avx2KernelDouble()};
#else
  (void)usesAvx512;
  return {own};
#endif
}

std::string nameOf(Way way, const std::string& ownName) {
  return way == own ? ownName : way == oneDnn ? "oneDNN" : "MKL";
}

/// The way that is taken for a wish: oneDNN may be absent.
Way available(Way way) { return way == oneDnn && !at::globalContext().hasMKLDNN() ? mkl : way; }

/// For people: "fewer than 4 rows", "4 to 63 rows" or "64 rows or more".
std::string describeRows(size_t firstClass, size_t lastClass) {
  if (firstClass == 0) return "fewer than " + std::to_string(tokenClasses[lastClass]) + " rows";
  const auto least = std::to_string(tokenClasses[firstClass - 1]);
  if (lastClass == tokenClasses.size()) return least + " rows or more";
  return least + " to " + std::to_string(tokenClasses[lastClass] - 1) + " rows";
}

/// For people, where products take another way than `usual`: "; gradients of fewer than 64 rows by
/// MKL".
std::string describeExceptions(const char* products, const WaysByTokens& ways, Way usual,
                               const std::string& ownName) {
  std::string text;
  for (size_t first = 0, last; first < ways.size(); first = last + 1) {
    const auto way = available(ways[first]);
    last = first;
    while (last + 1 < ways.size() && available(ways[last + 1]) == way) ++last;
    if (way == usual) continue;
    text += text.empty() ? std::string("; ") + products : std::string(",");
    if (first > 0 || last < tokenClasses.size()) text += " of " + describeRows(first, last);
    text += " by " + nameOf(way, ownName);
  }
  return text;
}

/// For people: "own AVX-512 kernel; gradients of fewer than 64 rows by MKL".
std::string describe(const ProcessorWays& ways, const std::string& ownName) {
  const auto usual = available(ways.forward.back());
  const auto exceptions = [&](const char* products, const WaysByTokens& byTokens) {
    return describeExceptions(products, byTokens, usual, ownName);
  };
  const auto forward = exceptions("forward products", ways.forward);
  const auto text = nameOf(usual, ownName) + forward;
  if (ways.inputGradient == ways.weightGradient) {
    return text + exceptions("gradients", ways.inputGradient);
  }
  return text + exceptions("input gradients", ways.inputGradient) +
         exceptions("weight gradients", ways.weightGradient);
}

struct Choice {
  ProcessorWays byShape = others;
  std::optional<Way> always;  // from the environment
  NamedWay kernels = {own};
  ProductWays names;
};

Choice choose() {
  const auto processor = examineProcessor();
  Choice choice;
  choice.byShape = waysOf(processor);
  if (processor.hasAvx2) choice.kernels = ownWay(processor.hasAvx512);
  const char* wish = std::getenv("TORCHFORMER_GEMM");
  if (wish != nullptr && *wish != '\0') {
    const auto named = parseWay("TORCHFORMER_GEMM", wish);
    choice.always = named.way;
    if (named.way == own) choice.kernels = named;
  }
  const auto* kernel = choice.kernels.floatKernel;
  const auto ownName = kernel == nullptr ? "MKL" : "own " + std::string(kernel->name) + " kernel";
  choice.names.float32 = choice.always.has_value()
                             ? nameOf(*choice.always, ownName) + ", set by TORCHFORMER_GEMM"
                             : describe(choice.byShape, ownName);
  choice.names.bfloat16 = processor.hasBfloat16 ? "bfloat16 instructions" : "rounded float32";
  return choice;
}

const Choice& choice() {
  static const Choice found = choose();
  return found;
}

}  // namespace

NamedWay parseWay(const char* owner, std::string_view name) {
  const auto processor = examineProcessor();
  if (name == "mkl") return {mkl};
  if (name == "onednn" && at::globalContext().hasMKLDNN()) return {oneDnn};
  if (name == "avx2" && processor.hasAvx2) return ownWay(/*usesAvx512=*/false);
  TF_CHECK(ERR_ARGUMENT, name == "avx512" && processor.hasAvx512, owner, " must be one of 'mkl'",
           at::globalContext().hasMKLDNN() ? ", 'onednn'" : "", processor.hasAvx2 ? ", 'avx2'" : "",
           processor.hasAvx512 ? ", 'avx512'" : "", " on this machine, got '", std::string(name),
           "'; leave it out for the choice by kind of processor");
  return ownWay(/*usesAvx512=*/true);
}

const ProductWays& productWays() { return choice().names; }

bool isLibraryForced() {
  const auto& always = choice().always;
  return always.has_value() && *always != own;
}

Way wayOf(ProductLayout layout, int64_t tokens, bool isDouble) {
  const auto& chosen = choice();
  if (chosen.always.has_value()) return isDouble && chosen.always == oneDnn ? mkl : *chosen.always;
  const auto& ways = layout == ProductLayout::forward         ? chosen.byShape.forward
                     : layout == ProductLayout::inputGradient ? chosen.byShape.inputGradient
                                                              : chosen.byShape.weightGradient;
  size_t index = 0;
  while (index < tokenClasses.size() && tokens >= tokenClasses[index]) ++index;
  const auto way = available(ways[index]);
  // oneDNN has no float64.
  return way == oneDnn && isDouble ? mkl : way;
}

template <>
const TileKernel<float>* tileKernel<float>() {
  return choice().kernels.floatKernel;
}

template <>
const TileKernel<double>* tileKernel<double>() {
  return choice().kernels.doubleKernel;
}

}  // namespace torchformer::core
