#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "core/support/seed.h"

// Scaled rows of a table plus rows of a second table, with dropout, forward and backward, on the
// device of the tensors. Formulas: ops/embed.cc.
//
// On the CPU all ids must be rows of their tables. Elsewhere a check would have to synchronize with
// the device: a row whose id is out of range is NaN, and does not contribute to the gradients.

namespace torchformer::core {

/// The rows to look up, and the operations on them.
struct EmbedRows {
  at::Tensor ids;        // int64 [N]
  at::Tensor positions;  // int64 [N], of the second table; undefined if there is none
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

/// Whether the device of `tensor` has kernels for these; if not, plain ops are used.
bool hasEmbedKernels(const at::Tensor& tensor);

void defineEmbedDeviceOps(torch::Library& library);

}  // namespace torchformer::core
