#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "core/support/seed.h"

// Rows of a table, scaled, with rows of a second table and a dropout, and back again, on the device
// that the tensors are on. Formulas: ops/embed.cc.
//
// On the CPU all ids have to be rows of their tables. Elsewhere nobody can look without waiting for
// the device: a row with another id is NaN, and has no part in the gradients.

namespace torchformer::core {

/// Which rows, and what is done to them.
struct EmbedRows {
  at::Tensor ids;        // int64 [N]
  at::Tensor positions;  // int64 [N], of the second table; undefined: none
  double scale;
  double dropoutP;
  Seed seed;
};

/// drop(weight[ids] * scale + table[positions]) [N, D] as `weight` [V, D]; `table` [P, D] in the
/// same dtype, but float32 for half types, or undefined without positions.
at::Tensor embedForward(const at::Tensor& weight, const at::Tensor& table, const EmbedRows& rows);

/// The gradient of weight[ids] from that of the result, both [N, D] in one dtype; with a scale of 1
/// that of table[positions]. `sizes`: numbers of rows of the two tables.
at::Tensor embedBackward(const at::Tensor& gradOutput, const EmbedRows& rows, int64_t vocabulary,
                         int64_t positions);

/// Whether the device of `tensor` has kernels for these; if not, plain ops have to do.
bool hasEmbedKernels(const at::Tensor& tensor);

void defineEmbedDeviceOps(torch::Library& library);

}  // namespace torchformer::core
