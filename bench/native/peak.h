// The most that the processor's multipliers can do, which no product can exceed.
#pragma once

namespace torchformer::bench {

enum class Vectors { avx2, avx512 };

// Float32 operations per second of fused multiply-adds on registers alone. All threads run at once,
// and the best of many short measurements of each counts, so that other load hardly lowers it. Not
// for more threads than cores. 0 on other kinds of processors.
double peakOf(Vectors vectors);

}  // namespace torchformer::bench
