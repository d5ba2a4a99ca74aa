// The parts of the program; each prints JSON.
#pragma once

#include <string>
#include <vector>

namespace torchformer::bench {

// Each op, forward and backward, compared with the plain ops that it replaces: an array.
void printOps(int rounds);

// The dispatcher's time for one small op, an array: a lower bound for any bridge.
void printCalls(int rounds);

// Matrix products, given as LAYOUT:TOKENSxINPUTxOUTPUT, by every way, and the peak: an object.
void printProducts(int rounds, const std::vector<std::string>& shapes);

// The peak, and the rate of reading memory for each number of bytes: an object.
void printRates(int rounds, const std::vector<std::string>& sizes);

}  // namespace torchformer::bench
