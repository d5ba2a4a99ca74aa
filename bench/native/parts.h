// The parts of the program; each prints a JSON array of its figures.
#pragma once

namespace torchformer::bench {

// Each op, forward and backward, beside the composition of plain ops that it stands for.
void printOps(int rounds);

// What the dispatcher takes for one small op: the floor of any bridge.
void printCalls(int rounds);

// Matrix products of a training step by both libraries.
void printProducts(int rounds);

}  // namespace torchformer::bench
