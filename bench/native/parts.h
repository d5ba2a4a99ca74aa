// The parts of the program; each prints a JSON array of its results.
#pragma once

namespace torchformer::bench {

// Each op, forward and backward, compared with the plain ops that it replaces.
void printOps(int rounds);

// The dispatcher's time for one small op: a lower bound for any bridge.
void printCalls(int rounds);

// Matrix products of a training step in both libraries.
void printProducts(int rounds);

}  // namespace torchformer::bench
