// Times the native ops without Node.js. Prints one line of JSON.
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "parts.h"

int main(int count, char** arguments) {
  const std::string what = count < 2 ? "" : arguments[1];
  const bool isProducts = what == "products" && count > 4;
  const bool isRates = what == "rates" && count > 4;
  if (!isProducts && !isRates && (what != "ops" || count != 4)) {
    std::fputs(
        "usage: native ops ROUNDS THREADS\n       native products ROUNDS THREADS SHAPE...\n"
        "       native rates ROUNDS THREADS BYTES...\n",
        stderr);
    return 2;
  }
  // Set as in the addon's loader, before the first allocation.
  setenv("THP_MEM_ALLOC_ENABLE", "1", 0);
  try {
    const int rounds = std::stoi(arguments[2]);
    at::set_num_threads(std::stoi(arguments[3]));
    at::manual_seed(1);
    if (isProducts) {
      torchformer::bench::printProducts(rounds, {arguments + 4, arguments + count});
    } else if (isRates) {
      torchformer::bench::printRates(rounds, {arguments + 4, arguments + count});
    } else {
      std::printf("{\"calls\":");
      torchformer::bench::printCalls(rounds);
      std::printf(",\"ops\":");
      torchformer::bench::printOps(rounds);
      std::printf("}\n");
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "Error: %s\n", error.what());
    return 1;
  }
  return 0;
}
