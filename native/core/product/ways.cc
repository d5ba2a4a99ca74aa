#include "core/product/ways.h"

#include <ATen/Context.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "core/product/tile_kernel.h"
#include "core/support/check.h"

namespace torchformer::core {

namespace {

/// Numbers of tokens with a way of their own: fewer than the first of these, than the second, ...
constexpr std::array<int64_t, 4> tokenClasses = {4, 16, 64, 256};

using WaysByTokens = std::array<Way, tokenClasses.size() + 1>;

struct ProcessorWays {
  const char* kind;
  WaysByTokens forward, inputGradient, weightGradient;
};

constexpr auto own = Way::own;
constexpr auto mkl = Way::mkl;
constexpr auto oneDnn = Way::oneDnn;

// From `npm run bench -- products`, on one processor of each kind.
//
// Forward products are our own for any number of rows: a row then gives the same bits in training,
// in evaluation and in decoding. Those of few rows are slower without packed weights, but in
// training the optimizer passes over the weight too, and outside of it the packed weight is kept.
constexpr ProcessorWays table[] = {
    {"Intel with AVX-512",
     {own, own, own, own, own},
     {mkl, mkl, mkl, own, own},
     {mkl, mkl, mkl, own, own}},
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

struct Processor {
  bool isAmd = false;
  bool hasAvx2 = false;
  bool hasAvx512 = false;
  bool hasBfloat16 = false;
};

Processor examineProcessor() {
  Processor processor;
#if defined(__x86_64__)
  __builtin_cpu_init();
  processor.isAmd = __builtin_cpu_is("amd");
  processor.hasAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  // Zhaoxin and others that have the instructions count as Intel's.
  processor.hasAvx512 = processor.hasAvx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  processor.hasBfloat16 = processor.hasAvx512 && __builtin_cpu_supports("avx512bf16");
#endif
  return processor;
}

const ProcessorWays& waysOf(const Processor& processor) {
  if (!processor.hasAvx2) return others;
  const std::string kind = std::string(processor.isAmd ? "AMD" : "Intel") + " with " +
                           (processor.hasAvx512 ? "AVX-512" : "AVX2");
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
  if (kernel != nullptr) choice.names.instructions = kernel->name;
  const bool isMkl = choice.always == mkl || kernel == nullptr;
  choice.names.float32 = choice.always == oneDnn ? "oneDNN"
                         : isMkl                 ? "MKL"
                                                 : "own " + choice.names.instructions + " kernel";
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
  TF_CHECK(ERR_ARGUMENT, name == "avx512" && processor.hasAvx512, owner, " must be 'mkl'",
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
  const auto way = ways[index];
  // oneDNN has no float64.
  return way == oneDnn && (isDouble || !at::globalContext().hasMKLDNN()) ? mkl : way;
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
