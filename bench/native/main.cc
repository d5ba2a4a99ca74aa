// Times the native ops without Node.js: `native ROUNDS THREADS` prints one line of JSON.
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "parts.h"

int main(int count, char** arguments) {
  if (count != 3) {
    std::fputs("usage: native ROUNDS THREADS\n", stderr);
    return 2;
  }
  // Set as in the addon's loader, before the first allocation.
  setenv("THP_MEM_ALLOC_ENABLE", "1", 0);
  try {
    const int rounds = std::stoi(arguments[1]);
    at::set_num_threads(std::stoi(arguments[2]));
    at::manual_seed(1);
    std::printf("{\"calls\":");
    torchformer::bench::printCalls(rounds);
    std::printf(",\"ops\":");
    torchformer::bench::printOps(rounds);
    std::printf(",\"products\":");
    torchformer::bench::printProducts(rounds);
    std::printf("}\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "Error: %s\n", error.what());
    return 1;
  }
  return 0;
}
