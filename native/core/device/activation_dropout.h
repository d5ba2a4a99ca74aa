#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "core/support/activation.h"
#include "core/support/seed.h"

// The operations between the linear layers of a feed-forward network, on the device of the tensors.
// Formulas: ops/feed_forward.cc.

namespace torchformer::core {

/// The results of the first linear layers; both are modified in place.
struct HiddenRows {
  at::Tensor main;  // [rows, F], becomes what the backward pass needs (see activateAndDrop)
  at::Tensor gate;  // [rows, F] for swiglu, else undefined; becomes c
  // [F], to be added first, float32 or in the dtype of the rows; undefined if absent or already
  // added.
  at::Tensor bias, gateBias;
};

/// Whether activateAndDrop should add the biases on the device of `input`; otherwise the preceding
/// products add them more efficiently.
bool addsBiases(const at::Tensor& input);

/// Returns h without the scale of the survivors; each element is dropped with probability `p`.
///
/// relu: `main` becomes h and is returned. gelu, swiglu: h is a new tensor, `main` becomes a with
/// `closedValue` in the dropped places.
at::Tensor activateAndDrop(Activation activation, const HiddenRows& rows, double p,
                           const Seed& seed);

void defineActivationDropoutDeviceOp(torch::Library& library);

}  // namespace torchformer::core
