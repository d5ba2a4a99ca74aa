// The most that the processor's multipliers can do, which no product can exceed.
#pragma once

namespace torchformer::bench {

enum class Vectors { avx2, avx512 };

// Float32 operations per second of fused multiply-adds on registers alone. All threads run at once,
// and the best of many short measurements of each counts, so that other load hardly lowers it. Not
// for more threads than cores. 0 on other kinds of processors.
double peakOf(Vectors vectors);

// The peaks with all vectors that this processor has; 0 for those that it lacks.
struct Peaks {
  double avx2, avx512;
};

Peaks measurePeaks();

// As a JSON array, the widest vectors last.
void printPeaks(const Peaks& before, const Peaks& after);

}  // namespace torchformer::bench
