#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdio>
#include <optional>

#include "op_call.h"
#include "parts.h"
#include "timing.h"

namespace torchformer::bench {
namespace {

using Tensors = std::vector<at::Tensor>;

// As in suite `modules`.
constexpr int64_t kSentences = 50, kLongest = 20, kWidth = 512, kInner = 2048, kHeads = 8;
constexpr int64_t kVocabulary = 8000;
constexpr double kDropout = 0.1;

struct OpCase {
  std::string op;
  std::string what;
  // The tensors that receive gradients, which are the first arguments.
  Tensors inputs;
  std::vector<c10::IValue> others;
  Keywords keywords;
};

at::Tensor parameter(at::IntArrayRef shape) { return (at::randn(shape) / 16).requires_grad_(); }

// The first output and the gradients of the inputs.
Tensors forwardAndBackward(const std::string& op, const OpCase& each, const at::Tensor& upstream) {
  std::vector<c10::IValue> arguments(each.inputs.begin(), each.inputs.end());
  arguments.insert(arguments.end(), each.others.begin(), each.others.end());
  const at::Tensor output = callOp(op, arguments, each.keywords)[0].toTensor();
  Tensors results = torch::autograd::grad({output}, each.inputs,
                                          {upstream.defined() ? upstream : at::ones_like(output)});
  results.insert(results.begin(), output.detach());
  return results;
}

// Largest difference, relative to the largest value of its tensor.
double differenceOf(const Tensors& a, const Tensors& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); i++) {
    const double size = b[i].abs().max().item<double>();
    const double difference = (a[i] - b[i]).abs().max().item<double>();
    largest = std::max(largest, size == 0 ? difference : difference / size);
  }
  return largest;
}

// Sentences of half to the full maximum length, one after another.
at::Tensor makeOffsets() {
  std::vector<int64_t> offsets = {0};
  for (int64_t i = 0; i < kSentences; i++) {
    offsets.push_back(offsets.back() + kLongest / 2 + i % (kLongest / 2 + 1));
  }
  return at::tensor(offsets, at::kLong);
}

// 100 sentences of 28 to 32 tokens.
at::Tensor makeBucket() {
  std::vector<int64_t> offsets = {0};
  for (int64_t i = 0; i < 100; i++) offsets.push_back(offsets.back() + 28 + i % 5);
  return at::tensor(offsets, at::kLong);
}

std::vector<OpCase> makeCases() {
  const at::Tensor offsets = makeOffsets();
  const int64_t tokens = offsets[-1].item<int64_t>();
  const at::Tensor lengths = offsets.diff();
  const at::Tensor mask =
      (at::arange(kLongest).unsqueeze(0) < lengths.unsqueeze(1)).reshape({-1, 1, 1, kLongest});
  const auto feedForward = [](const at::Tensor& x) {
    return Tensors{x, parameter({kInner, kWidth}), parameter({kInner}), parameter({kWidth, kInner}),
                   parameter({kWidth})};
  };
  const at::Tensor padded = parameter({kSentences, kLongest, kWidth});
  const at::Tensor packed = parameter({tokens, kWidth});
  const at::Tensor scale = parameter({kWidth}), shift = parameter({kWidth});
  std::vector<OpCase> cases;
  for (const auto& [x, name] : {std::pair(padded, "padded"), std::pair(packed, "packed")}) {
    cases.push_back({"layer_norm", name, {x, scale, shift}, {}, {}});
    cases.push_back({"rms_norm", name, {x, scale}, {}, {}});
    cases.push_back({"dropout", name, {x}, {kDropout}, {}});
    cases.push_back({"dropout",
                     std::string(name) + ", residual",
                     {x},
                     {kDropout},
                     {{"residual", at::randn_like(x)}}});
    cases.push_back({"linear", name, {x, parameter({kWidth, kWidth}), shift}, {}, {}});
    cases.push_back({"feed_forward", name, feedForward(x), {kDropout}, {}});
  }
  const auto heads = [] { return parameter({kSentences, kHeads, kLongest, kWidth / kHeads}); };
  cases.push_back({"attention", "padded", {heads(), heads(), heads()}, {mask, kDropout}, {}});
  const auto narrow = [] { return parameter({kSentences, kHeads, kLongest, 32}); };
  cases.push_back(
      {"attention", "padded, heads of 32", {narrow(), narrow(), narrow()}, {mask, kDropout}, {}});
  const auto rows = [&] { return parameter({tokens, kWidth}); };
  cases.push_back({"packed_attention",
                   "packed, causal",
                   {rows(), rows(), rows()},
                   {offsets, offsets, kHeads, true, kDropout},
                   {}});
  // A batch of 3,000 tokens as length buckets give it, in the two sizes of heads.
  const at::Tensor bucket = makeBucket();
  for (const int64_t width : {int64_t{32}, int64_t{64}}) {
    const auto inBucket = [&] {
      return parameter({bucket[-1].item<int64_t>(), kHeads * width});
    };
    cases.push_back({"packed_attention",
                     "bucket, heads of " + std::to_string(width),
                     {inBucket(), inBucket(), inBucket()},
                     {bucket, bucket, kHeads, false, kDropout},
                     {}});
  }
  cases.push_back({"linear_cross_entropy",
                   "packed, V 8,000",
                   {packed, parameter({kVocabulary, kWidth}), parameter({kVocabulary})},
                   {at::randint(kVocabulary, {tokens}, at::kLong)},
                   {}});
  return cases;
}

void printFigure(bool first, const char* op, const std::string& what, const char* reference,
                 const std::vector<Timing>& timings, double difference) {
  std::printf("%s{\"op\":\"%s\",\"what\":\"%s\",\"reference\":\"%s\",", first ? "[" : ",", op,
              what.c_str(), reference);
  printTiming("seconds", timings[0]);
  std::printf(",");
  printTiming("referenceSeconds", timings[1]);
  std::printf(",\"difference\":%.3g}", difference);
}

// The update of an embedding of which a step uses some rows is compared with a dense op.
void printAdamRows(int rounds) {
  const at::NoGradGuard noGrad;
  const at::Tensor ids = at::randperm(kVocabulary).slice(0, 0, 500);
  const at::Tensor values = at::randn({500, kWidth});
  const at::Tensor dense = at::zeros({kVocabulary, kWidth}).index_copy_(0, ids, values);
  const at::Tensor sparse =
      at::sparse_coo_tensor(ids.unsqueeze(0), values, {kVocabulary, kWidth}).coalesce();
  const at::Tensor start = at::randn({kVocabulary, kWidth});
  struct State {
    at::Tensor weight, first, second;
  };
  const auto makeState = [&] {
    return State{start.clone(), at::zeros_like(start), at::zeros_like(start)};
  };
  const State ours = makeState(), theirs = makeState();
  const at::Tensor touched = at::zeros({kVocabulary}, at::kBool);
  constexpr double kRate = 1e-3, kBeta1 = 0.9, kBeta2 = 0.999, kEps = 1e-8;
  const at::Tensor ourStep = at::zeros({});
  int64_t theirStep = 0;
  const Work rows = [&] {
    ourStep.add_(1);
    callOp("torchformer::adam_rows_",
           {ours.weight, sparse, ours.first, ours.second, touched, ourStep},
           {{"lr", kRate}, {"beta1", kBeta1}, {"beta2", kBeta2}, {"eps", kEps}});
  };
  const Work all = [&] {
    const at::Tensor step = at::full({}, static_cast<double>(++theirStep));
    at::_fused_adam_({theirs.weight}, {dense}, {theirs.first}, {theirs.second}, {}, {step}, kRate,
                     kBeta1, kBeta2, 0, kEps, false, false);
  };
  for (int i = 0; i < 10; i++) {
    rows();
    all();
  }
  const double difference = differenceOf({ours.weight}, {theirs.weight});
  printFigure(false, "adam_rows_", "500 rows of V 8,000", "_fused_adam_ of all rows",
              timingsOf({rows, all}, rounds), difference);
}

}  // namespace

void printOps(int rounds) {
  bool first = true;
  for (const OpCase& each : makeCases()) {
    const std::string op = "torchformer::" + each.op;
    const auto run = [&](const std::string& name, const at::Tensor& upstream) {
      // The same seed gives both the same dropout mask.
      at::manual_seed(7);
      return forwardAndBackward(name, each, upstream);
    };
    const at::Tensor output = run(op, {})[0];
    const at::Tensor upstream = at::randn_like(output);
    const double difference = differenceOf(run(op, upstream), run(op + "_reference", upstream));
    const auto timings = timingsOf({[&] { forwardAndBackward(op, each, upstream); },
                                    [&] { forwardAndBackward(op + "_reference", each, upstream); }},
                                   rounds);
    printFigure(first, each.op.c_str(), each.what, "its _reference", timings, difference);
    first = false;
  }
  printAdamRows(rounds);
  std::printf("]");
}

}  // namespace torchformer::bench
