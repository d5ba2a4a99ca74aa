// What bounds decoding: the multipliers' peak, and how fast weights can be read. They are read
// again in every step, so that small ones come from a cache.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <cstdint>
#include <limits>
#include <stdexcept>

#include "core/product/processor.h"
#include "parts.h"
#include "peak.h"
#include "timing.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace torchformer::bench {
namespace {

// The compiler must not drop what nobody uses.
volatile int64_t readSink;

// The bitwise or of all words, which costs less than reading them.
int64_t readPlain(const int64_t* words, int64_t count) {
  int64_t all = 0;
  for (int64_t i = 0; i < count; i++) all |= words[i];
  return all;
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) int64_t readAvx2(const int64_t* words, int64_t count) {
  __m256i all[4] = {};
  for (int64_t i = 0; i + 16 <= count; i += 16) {
#pragma GCC unroll 4
    for (int part = 0; part < 4; part++) {
      const auto* const from = reinterpret_cast<const __m256i*>(words + i + 4 * part);
      all[part] = _mm256_or_si256(all[part], _mm256_loadu_si256(from));
    }
  }
  alignas(32) int64_t last[4];
  _mm256_store_si256(
      reinterpret_cast<__m256i*>(last),
      _mm256_or_si256(_mm256_or_si256(all[0], all[1]), _mm256_or_si256(all[2], all[3])));
  return readPlain(last, 4);
}

__attribute__((target("avx512f"))) int64_t readAvx512(const int64_t* words, int64_t count) {
  __m512i all[4] = {};
  for (int64_t i = 0; i + 32 <= count; i += 32) {
#pragma GCC unroll 4
    for (int part = 0; part < 4; part++) {
      all[part] = _mm512_or_si512(all[part], _mm512_loadu_si512(words + i + 8 * part));
    }
  }
  alignas(64) int64_t last[8];
  _mm512_store_si512(
      last, _mm512_or_si512(_mm512_or_si512(all[0], all[1]), _mm512_or_si512(all[2], all[3])));
  return readPlain(last, 8);
}

#endif

using Read = int64_t (*)(const int64_t* words, int64_t count);

Read chooseRead() {
#if defined(__x86_64__)
  const core::Processor processor = core::examineProcessor();
  if (processor.hasAvx512) return readAvx512;
  if (processor.hasAvx2) return readAvx2;
#endif
  return readPlain;
}

// Bytes per second when all threads together read so many bytes again and again, each its own part;
// the best of `rounds` measurements.
double readingRate(int64_t bytes, int rounds) {
  // Enough for the start of the threads not to matter.
  constexpr int64_t kLongEnough = int64_t{64} << 20;
  const Read read = chooseRead();
  const int64_t words = bytes / 8;
  const int64_t repeats = std::max<int64_t>(1, kLongEnough / bytes);
  const at::Tensor memory = at::zeros({words}, at::kLong);
  const int64_t* const data = memory.const_data_ptr<int64_t>();
  const int64_t threads = at::get_num_threads();
  double shortest = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; round++) {
    const double seconds = secondsOf(
        [&] {
          at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
            const int64_t first = words * begin / threads;
            const int64_t count = words * end / threads - first;
            int64_t all = 0;
            for (int64_t repeat = 0; repeat < repeats; repeat++) all |= read(data + first, count);
            readSink = all;
          });
        },
        1);
    shortest = std::min(shortest, seconds);
  }
  return static_cast<double>(8 * words * repeats) / shortest;
}

}  // namespace

void printRates(int rounds, const std::vector<std::string>& sizes) {
  const Peaks before = measurePeaks();
  std::printf("{\"reading\":[");
  bool first = true;
  for (const std::string& text : sizes) {
    const int64_t bytes = std::stoll(text);
    if (bytes < 1024) throw std::invalid_argument("BYTES must be at least 1024, got " + text);
    std::printf("%s{\"bytes\":%ld,\"bytesPerSecond\":%.4g}", first ? "" : ",", bytes,
                readingRate(bytes, rounds));
    first = false;
  }
  std::printf("],\"peaks\":");
  printPeaks(before, measurePeaks());
  std::printf("}\n");
}

}  // namespace torchformer::bench
