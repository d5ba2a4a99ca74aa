// The door from the dispatcher to native decoding: checks of all arguments, and results as tensors.

#include "core/decode/decode_ops.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "core/decode/generation.h"
#include "core/decode/native_objects.h"
#include "core/product/weight_state.h"
#include "core/support/check.h"

namespace torchformer::core {

namespace {

using Models = NativeObjects<const PreparedModel>;
using Generations = NativeObjects<Generation>;

std::vector<int32_t> tokensOf(const char* op, const char* name, at::IntArrayRef given,
                              int64_t vocabulary) {
  std::vector<int32_t> tokens;
  for (const auto token : given) {
    TF_CHECK(ERR_ARGUMENT, token >= 0 && token < vocabulary, op, ": ", name,
             " must hold ids from 0 to ", vocabulary - 1, ", got ", token);
    tokens.push_back(static_cast<int32_t>(token));
  }
  return tokens;
}

void checkAtLeast(const char* op, const char* name, int64_t value, int64_t least) {
  TF_CHECK(ERR_ARGUMENT, value >= least, op, ": ", name, " must be at least ", least, ", got ",
           value);
}

void checkFinite(const char* op, const char* name, double value, double least) {
  TF_CHECK(ERR_ARGUMENT, std::isfinite(value) && value >= least, op, ": ", name,
           " must be at least ", least, ", got ", value);
}

int64_t prepare(const c10::List<std::optional<at::Tensor>>& weights, int64_t layers, int64_t heads,
                double eps, bool sampleStd, bool epsOutside, bool centred, bool postNorm,
                std::string_view activation, std::string_view precision) {
  std::vector<at::Tensor> found;
  for (const std::optional<at::Tensor> weight : weights) {
    found.push_back(weight.value_or(at::Tensor()));
  }
  const ModelForm form{layers,
                       heads,
                       postNorm,
                       {eps, sampleStd, epsOutside, centred},
                       parseActivation("prepare", activation),
                       parseWeightPrecision("prepare", precision)};
  return Models::add(std::make_shared<const PreparedModel>(found, form));
}

/// A number that changes when one of the weights does, or is another.
///
/// It is asked for before every decoding, so it looks at few elements of a weight; whatever changes
/// without telling the version counters, such as an optimizer, changes most elements of most
/// weights.
int64_t fingerprint(const c10::List<std::optional<at::Tensor>>& weights) {
  uint64_t hash = 0;
  const auto mix = [&](uint64_t bits) {
    hash = (hash ^ bits) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
  };
  for (const std::optional<at::Tensor> given : weights) {
    const auto weight = given.value_or(at::Tensor());
    if (!weight.defined()) {
      mix(0);
      continue;
    }
    checkFloating("fingerprint", "weights", weight);
    mix(reinterpret_cast<uintptr_t>(weight.const_data_ptr()));
    mix(static_cast<uint64_t>(weight.scalar_type()));
    for (const auto size : weight.sizes()) mix(static_cast<uint64_t>(size));
    const bool isSampled = weight.is_cpu() && weight.scalar_type() == at::kFloat &&
                           weight.numel() > 0 && !weight.is_inference() &&
                           (weight.is_contiguous() || weight.dim() == 2);
    if (!isSampled) continue;
    constexpr int64_t samples = 8;
    const auto state = weightState(weight, weight, samples);
    mix(state.version);
    mix(state.sample);
  }
  // Whole numbers that JavaScript has exactly.
  return static_cast<int64_t>(hash >> 11);
}

void freeModel(int64_t handle) { Models::remove(handle); }

void freeGeneration(int64_t handle) { Generations::remove(handle); }

/// [prepared models, generations] of the process.
std::vector<int64_t> live() { return {Models::count(), Generations::count()}; }

int64_t start(at::IntArrayRef handles, int64_t begin, int64_t end, at::IntArrayRef never,
              int64_t mostRows) {
  const char* const op = "start";
  TF_CHECK(ERR_ARGUMENT, !handles.empty(), op, ": models must hold at least one");
  std::vector<std::shared_ptr<const PreparedModel>> models;
  for (const auto handle : handles) models.push_back(Models::get(op, "model", handle));
  const auto vocabulary = models.front()->vocabulary;
  for (const auto& model : models) {
    TF_CHECK(ERR_SHAPE, model->vocabulary == vocabulary, op,
             ": the models must have the same target vocabulary, got ", vocabulary, " and ",
             model->vocabulary, " tokens");
  }
  tokensOf(op, "begin", {begin}, vocabulary);
  tokensOf(op, "end", {end}, vocabulary);
  checkAtLeast(op, "most_rows", mostRows, 1);
  auto tokens = tokensOf(op, "never", never, vocabulary);
  return Generations::add(
      std::make_shared<Generation>(std::move(models), begin, end, std::move(tokens), mostRows));
}

int64_t add(int64_t handle, at::IntArrayRef source, int64_t maxLength, int64_t minLength,
            int64_t beam, int64_t nBest, double lengthPenalty, bool gnmtPenalty,
            double coveragePenalty, double patience, double repetitionPenalty,
            int64_t noRepeatNgram, at::IntArrayRef suppressed, at::IntArrayRef prefix, bool forced,
            double temperature, int64_t topK, double topP, int64_t seed, bool scores,
            bool attention, int64_t attentionLayer, int64_t attentionHead, bool streams) {
  const char* const op = "add";
  const auto generation = Generations::get(op, "generation", handle);
  const auto& model = generation->model();
  GenerationRequest request;
  request.source = source.vec();
  tokensOf(op, "source", source, generation->sourceVocabulary());
  TF_CHECK(ERR_ARGUMENT, !source.empty() && std::ssize(source) <= generation->longestSource(), op,
           ": source must have 1 to ", generation->longestSource(), " tokens, got ", source.size());
  auto& search = request.search;
  checkAtLeast(op, "max_length", maxLength, 1);
  TF_CHECK(ERR_ARGUMENT, maxLength <= generation->longestTarget(), op,
           ": max_length must be at most ", generation->longestTarget(), ", got ", maxLength);
  search.maxLength = maxLength;
  checkAtLeast(op, "min_length", minLength, 0);
  search.minLength = minLength;
  checkAtLeast(op, "beam", beam, 1);
  search.beam = beam;
  checkAtLeast(op, "n_best", nBest, 1);
  search.nBest = nBest;
  checkFinite(op, "temperature", temperature, 0);
  search.temperature = temperature;
  TF_CHECK(ERR_ARGUMENT, temperature == 0 || beam == 1, op, ": sampling has no beam, got ", beam);
  TF_CHECK(ERR_ARGUMENT, temperature > 0 || nBest <= beam, op,
           ": n_best must be at most the beam, ", beam, ", got ", nBest);
  checkFinite(op, "length_penalty", lengthPenalty, -100);
  search.lengthPenalty = {lengthPenalty, gnmtPenalty};
  checkFinite(op, "coverage_penalty", coveragePenalty, 0);
  search.coveragePenalty = coveragePenalty;
  TF_CHECK(ERR_ARGUMENT, patience > 0, op, ": patience must be positive, got ", patience);
  search.patience = patience;
  TF_CHECK(ERR_ARGUMENT, std::isfinite(repetitionPenalty) && repetitionPenalty > 0, op,
           ": repetition_penalty must be positive, got ", repetitionPenalty);
  search.repetitionPenalty = repetitionPenalty;
  checkAtLeast(op, "no_repeat_ngram", noRepeatNgram, 0);
  search.noRepeatNgram = noRepeatNgram;
  search.suppressed = tokensOf(op, "suppressed", suppressed, model.vocabulary);
  search.prefix = tokensOf(op, "prefix", prefix, model.vocabulary);
  TF_CHECK(ERR_ARGUMENT, std::ssize(prefix) <= maxLength, op, ": prefix must have at most ",
           maxLength, " tokens, got ", prefix.size());
  TF_CHECK(ERR_ARGUMENT, !forced || !prefix.empty(), op, ": a forced target must have tokens");
  search.forced = forced;
  checkAtLeast(op, "top_k", topK, 0);
  search.topK = topK;
  TF_CHECK(ERR_ARGUMENT, topP > 0 && topP <= 1, op, ": top_p must be in (0, 1], got ", topP);
  search.topP = topP;
  // Sources with one seed have random numbers of their own.
  search.seed = static_cast<uint64_t>(seed);
  for (const auto token : source) {
    search.seed = (search.seed ^ static_cast<uint64_t>(token)) * 0x9E3779B97F4A7C15ULL;
    search.seed ^= search.seed >> 32;
  }
  search.wantsScores = scores;
  search.wantsAttention = attention;
  TF_CHECK(ERR_ARGUMENT, attentionLayer >= -1 && attentionLayer < model.form.layers, op,
           ": attention_layer must be from -1 to ", model.form.layers - 1, ", got ",
           attentionLayer);
  search.attentionLayer = attentionLayer;
  TF_CHECK(ERR_ARGUMENT, attentionHead >= -1 && attentionHead < model.form.heads, op,
           ": attention_head must be from -1 to ", model.form.heads - 1, ", got ", attentionHead);
  search.attentionHead = attentionHead;
  request.streams = streams;
  return generation->add(std::move(request));
}

void cancel(int64_t handle, int64_t request) {
  Generations::get("cancel", "generation", handle)->cancel(request);
}

template <typename T, typename From>
at::Tensor tensorOf(const std::vector<From>& values, at::ScalarType dtype) {
  auto tensor = at::empty({std::ssize(values)}, at::TensorOptions().dtype(dtype));
  std::copy(values.begin(), values.end(), tensor.template mutable_data_ptr<T>());
  return tensor;
}

/// Events one after the other. Whole numbers of each: request, kind, and then
///   tokens: count, the tokens;  notFinite: position;
///   done: number of targets, and of each whether it ended, count, the tokens, number of scores,
///   number of attention weights.
/// Of each target the other tensor has its score, those of its tokens, and its attention weights.
std::tuple<at::Tensor, at::Tensor> run(int64_t handle, double seconds, double eager) {
  const auto generation = Generations::get("run", "generation", handle);
  std::vector<int64_t> whole;
  std::vector<float> real;
  const auto writeTokens = [&](const std::vector<int32_t>& tokens) {
    whole.push_back(std::ssize(tokens));
    whole.insert(whole.end(), tokens.begin(), tokens.end());
  };
  for (const auto& event : generation->run(seconds, eager)) {
    whole.push_back(event.request);
    whole.push_back(static_cast<int64_t>(event.kind));
    if (event.kind == GenerationEvent::Kind::tokens) {
      writeTokens(event.tokens);
    } else if (event.kind == GenerationEvent::Kind::notFinite) {
      whole.push_back(event.position);
    } else {
      whole.push_back(std::ssize(event.targets));
      for (const auto& target : event.targets) {
        whole.push_back(target.ended ? 1 : 0);
        writeTokens(target.tokens);
        whole.push_back(std::ssize(target.tokenScores));
        whole.push_back(std::ssize(target.attention));
        real.push_back(static_cast<float>(target.score));
        real.insert(real.end(), target.tokenScores.begin(), target.tokenScores.end());
        real.insert(real.end(), target.attention.begin(), target.attention.end());
      }
    }
  }
  return {tensorOf<int64_t>(whole, at::kLong), tensorOf<float>(real, at::kFloat)};
}

int64_t pending(int64_t handle) {
  return Generations::get("pending", "generation", handle)->pending();
}

/// The encoder's output for sources [tokens], one after the other: [tokens, D].
at::Tensor encode(int64_t handle, at::IntArrayRef ids, at::IntArrayRef lengths) {
  const char* const op = "encode";
  const auto model = Models::get(op, "model", handle);
  tokensOf(op, "ids", ids, model->source.table.size(0));
  std::vector<std::vector<int64_t>> sources;
  size_t first = 0;
  for (const auto length : lengths) {
    TF_CHECK(ERR_ARGUMENT,
             length >= 1 && length <= model->longestSource() &&
                 length <= std::ssize(ids) - static_cast<int64_t>(first),
             op, ": lengths must be from 1 to ", model->longestSource(),
             " and add up to the number of ids, got ", length);
    const auto* const start = ids.data() + first;
    sources.emplace_back(start, start + length);
    first += static_cast<size_t>(length);
  }
  TF_CHECK(ERR_ARGUMENT, first == ids.size(), op, ": lengths must add up to ", ids.size(), ", got ",
           first);
  const auto result = at::empty({std::ssize(ids), model->width});
  if (sources.empty()) return result;
  std::vector<const std::vector<int64_t>*> pointers;
  for (const auto& source : sources) pointers.push_back(&source);
  ModelPasses passes(model);
  passes.encode(pointers);
  std::copy_n(passes.memory(), result.numel(), result.mutable_data_ptr<float>());
  auto rest = result;
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto length = std::ssize(sources[i]);
    TF_CHECK(ERR_NON_FINITE, rest.narrow(0, 0, length).isfinite().all().item<bool>(), op,
             ": the states of source ", i, " are NaN or infinite");
    rest = rest.narrow(0, length, rest.size(0) - length);
  }
  return result;
}

template <typename Kernel>
void define(torch::Library& library, const std::string& schema, Kernel&& kernel) {
  library.def(schema.c_str());
  library.impl(
      schema.substr(0, schema.find('(')).c_str(),
      torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, std::forward<Kernel>(kernel)));
}

}  // namespace

void defineDecodeOps(torch::Library& library) {
  define(library,
         "prepare(Tensor?[] weights, int layers, int heads, *, float eps=1e-6, "
         "bool sample_std=False, bool eps_outside=False, bool centred=True, bool post_norm=False, "
         "str activation=\"relu\", str precision=\"float32\") -> int",
         TORCH_FN(prepare));
  define(library, "fingerprint(Tensor?[] weights) -> int", TORCH_FN(fingerprint));
  define(library, "free_model(int model) -> ()", TORCH_FN(freeModel));
  define(library, "free_generation(int generation) -> ()", TORCH_FN(freeGeneration));
  define(library, "live() -> int[]", TORCH_FN(live));
  define(library,
         "start(int[] models, int begin, int end, *, int[] never=[], int most_rows=32) -> int",
         TORCH_FN(start));
  define(library,
         "add(int generation, int[] source, int max_length, *, int min_length=0, int beam=1, "
         "int n_best=1, float length_penalty=0, bool gnmt_penalty=False, float coverage_penalty=0, "
         "float patience=1, float repetition_penalty=1, int no_repeat_ngram=0, "
         "int[] suppressed=[], int[] prefix=[], bool forced=False, float temperature=0, "
         "int top_k=0, float top_p=1, int seed=0, bool scores=False, bool attention=False, "
         "int attention_layer=-1, int attention_head=-1, bool streams=False) -> int",
         TORCH_FN(add));
  define(library, "cancel(int generation, int request) -> ()", TORCH_FN(cancel));
  define(library, "run(int generation, float seconds, float eager) -> (Tensor, Tensor)",
         TORCH_FN(run));
  define(library, "pending(int generation) -> int", TORCH_FN(pending));
  define(library, "encode(int model, int[] ids, int[] lengths) -> Tensor", TORCH_FN(encode));
}

}  // namespace torchformer::core
