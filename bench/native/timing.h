// A small stopwatch: runs pieces of work in turn, so that other load affects all of them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

namespace torchformer::bench {

using Work = std::function<void()>;

inline double secondsOf(const Work& work, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; i++) work();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  return time.count() / calls;
}

// Number of calls per measurement, so that the clock's resolution and other load matter little.
inline int callsFor(const Work& work) {
  constexpr double kLongEnough = 0.005;
  // The first call allocates memory and fills caches for later ones.
  work();
  int calls = 1;
  while (calls < (1 << 20) && secondsOf(work, calls) * calls < kLongEnough) calls *= 2;
  return calls;
}

// Seconds per call. A shortest time far below the median indicates that other programs were
// running.
struct Timing {
  double median, shortest;
};

// How long a call of each takes, over `rounds` measurements in turn.
inline std::vector<Timing> timingsOf(const std::vector<Work>& works, int rounds) {
  std::vector<int> calls;
  for (const Work& work : works) calls.push_back(callsFor(work));
  std::vector<std::vector<double>> times(works.size());
  for (int round = 0; round < rounds; round++) {
    for (size_t i = 0; i < works.size(); i++) times[i].push_back(secondsOf(works[i], calls[i]));
  }
  std::vector<Timing> timings;
  for (std::vector<double>& all : times) {
    const auto middle = all.begin() + static_cast<long>(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    timings.push_back({*middle, *std::min_element(all.begin(), all.end())});
  }
  return timings;
}

// As a JSON object.
inline void printTiming(const char* name, const Timing& timing) {
  std::printf("\"%s\":{\"median\":%.4g,\"shortest\":%.4g}", name, timing.median, timing.shortest);
}

}  // namespace torchformer::bench
