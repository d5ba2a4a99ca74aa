// The tie between JS Tensor objects and native tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <napi.h>

#include <vector>

#include "tensor_table.h"

namespace torchformer::bind {

struct Environment;

// Puts `tensor` (which is defined) into the table; returns the number for its JS object.
int64_t holdTensor(Environment& environment, at::Tensor tensor);

// For a slot whose tensor may have another storage than before, or one of another size.
void updateReport(Environment& environment, TensorSlot& slot);

// Frees a native tensor now. Harmless for a slot that is free.
void releaseTensor(Environment& environment, int64_t number);

// A new JS Tensor around `tensor` (which is defined).
Napi::Value wrapTensor(Environment& environment, at::Tensor tensor);

// Null if `value` is no Tensor of this environment; a free slot if it has been disposed of.
TensorSlot* slotOf(Environment& environment, const Napi::Value& value);

// The tensor behind `value`; BridgeError ERR_DISPOSED or ERR_ARGUMENT naming `what`.
const at::Tensor& tensorOf(Environment& environment, const Napi::Value& value, const char* what);

// The tensors of an array, undefined ones for null; BridgeError naming `what`, or `element` for
// what is in it.
std::vector<at::Tensor> tensorsOf(Environment& environment, const Napi::Value& array,
                                  const char* what, const char* element);

// Adds the functions on tensors to the addon's exports.
void exportTensorFunctions(Napi::Object exports);

}  // namespace torchformer::bind
