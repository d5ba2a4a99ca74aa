#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "core/support/activation.h"
#include "core/support/seed.h"

// What a feed-forward network does between its linear layers, on the device that the tensors are
// on. Formulas: ops/feed_forward.cc.

namespace torchformer::core {

/// The results of the first linear layers; both are changed in place.
struct HiddenRows {
  at::Tensor main;  // [rows, F], becomes what the backward pass needs (see activateAndDrop)
  at::Tensor gate;  // [rows, F] for swiglu, else undefined; becomes c
  // [F], to be added first, float32 or as the rows; undefined: none, or added already.
  at::Tensor bias, gateBias;
};

/// Whether activateAndDrop is to add the biases to rows of `dtype` on the device of `input`: else
/// the products before it do that better.
bool addsBiases(Activation activation, const at::Tensor& input, at::ScalarType dtype);

/// Returns h without the scale of the survivors; each element is dropped with probability `p`.
///
/// relu: `main` becomes h and is returned. gelu, swiglu: h is a new tensor, `main` becomes a with
/// `closedValue` in the dropped places.
at::Tensor activateAndDrop(Activation activation, const HiddenRows& rows, double p,
                           const Seed& seed);

void defineActivationDropoutDeviceOp(torch::Library& library);

}  // namespace torchformer::core
