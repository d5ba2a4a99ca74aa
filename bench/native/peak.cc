// Loops of independent chains of fused multiply-adds: more of them than multipliers times cycles of
// one, so that no multiplier waits for a result, and no memory is read.

#include "peak.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <vector>

#include "core/product/processor.h"
#include "timing.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace torchformer::bench {
namespace {

#if defined(__x86_64__)

// Values that the compiler cannot know, and whose sums stay finite.
volatile float kFactor = 1e-3F;
volatile float kSink;

constexpr int kAvx2Chains = 12;    // of 16 registers
constexpr int kAvx512Chains = 24;  // of 32

__attribute__((target("avx2,fma"))) void addUpAvx2(int64_t steps) {
  __m256 sums[kAvx2Chains];
#pragma GCC unroll 12
  for (int i = 0; i < kAvx2Chains; i++) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 x = _mm256_set1_ps(kFactor);
  const __m256 y = _mm256_set1_ps(kFactor);
  for (int64_t step = 0; step < steps; step++) {
#pragma GCC unroll 12
    for (int i = 0; i < kAvx2Chains; i++) sums[i] = _mm256_fmadd_ps(x, y, sums[i]);
  }
  __m256 sum = sums[0];
#pragma GCC unroll 12
  for (int i = 1; i < kAvx2Chains; i++) sum = _mm256_add_ps(sum, sums[i]);
  kSink = _mm256_cvtss_f32(sum);
}

__attribute__((target("avx512f"))) void addUpAvx512(int64_t steps) {
  __m512 sums[kAvx512Chains];
#pragma GCC unroll 24
  for (int i = 0; i < kAvx512Chains; i++) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 x = _mm512_set1_ps(kFactor);
  const __m512 y = _mm512_set1_ps(kFactor);
  for (int64_t step = 0; step < steps; step++) {
#pragma GCC unroll 24
    for (int i = 0; i < kAvx512Chains; i++) sums[i] = _mm512_fmadd_ps(x, y, sums[i]);
  }
  __m512 sum = sums[0];
#pragma GCC unroll 24
  for (int i = 1; i < kAvx512Chains; i++) sum = _mm512_add_ps(sum, sums[i]);
  kSink = _mm512_cvtss_f32(sum);
}

#endif

}  // namespace

double peakOf(Vectors vectors) {
#if defined(__x86_64__)
  const auto addUp = vectors == Vectors::avx512 ? addUpAvx512 : addUpAvx2;
  constexpr int64_t kSteps = 200'000;  // less than a millisecond
  constexpr int kMeasurements = 200;
  const int64_t threads = at::get_num_threads();
  std::vector<double> shortest(static_cast<size_t>(threads));
  at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; thread++) {
      double& best = shortest[static_cast<size_t>(thread)];
      best = std::numeric_limits<double>::infinity();
      for (int i = 0; i < kMeasurements; i++) {
        best = std::min(best, secondsOf([&] { addUp(kSteps); }, 1));
      }
    }
  });
  const int64_t floats = vectors == Vectors::avx512 ? 16 * kAvx512Chains : 8 * kAvx2Chains;
  double rate = 0;
  for (const double seconds : shortest)
    rate += 2.0 * static_cast<double>(floats * kSteps) / seconds;
  return rate;
#else
  (void)vectors;
  return 0;
#endif
}

Peaks measurePeaks() {
  const core::Processor processor = core::examineProcessor();
  return {processor.hasAvx2 ? peakOf(Vectors::avx2) : 0,
          processor.hasAvx512 ? peakOf(Vectors::avx512) : 0};
}

void printPeaks(const Peaks& before, const Peaks& after) {
  std::printf("[");
  if (before.avx2 > 0) {
    std::printf("{\"instructions\":\"AVX2\",\"before\":%.4g,\"after\":%.4g}", before.avx2,
                after.avx2);
  }
  if (before.avx512 > 0) {
    std::printf(",{\"instructions\":\"AVX-512\",\"before\":%.4g,\"after\":%.4g}", before.avx512,
                after.avx512);
  }
  std::printf("]");
}

}  // namespace torchformer::bench
