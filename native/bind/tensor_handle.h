// The connection between JS Tensor objects and native tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <napi.h>

#include <vector>

#include "tensor_table.h"

namespace torchformer::bind {

struct Environment;

// Adds `tensor` (which must be defined) to the table; returns the slot number for its JS object.
int64_t holdTensor(Environment& environment, at::Tensor tensor);

// Counts the memory of a slot again whose tensor may have another storage, or one of another size.
void updateStorage(Environment& environment, TensorSlot& slot);

// Reports the memory of all tensors to the garbage collector, which otherwise sees only the few
// bytes of the JS objects. More memory is reported here alone, at the end of each tick: before it,
// the collector can free no tensor, and would run in vain whenever a tick needs much memory. Less
// memory is reported at once.
void reportMemory(Environment& environment);

// Frees a native tensor immediately. Does nothing for a free slot.
void releaseTensor(Environment& environment, int64_t number);

// Creates a JS Tensor for `tensor` (which must be defined).
Napi::Value wrapTensor(Environment& environment, at::Tensor tensor);

// Null if `value` is not a Tensor of this environment; a free slot if it has been disposed of.
TensorSlot* slotOf(Environment& environment, const Napi::Value& value);

// The tensor of `value`; throws BridgeError ERR_DISPOSED or ERR_ARGUMENT naming `what`.
const at::Tensor& tensorOf(Environment& environment, const Napi::Value& value, const char* what);

// The tensors of an array, undefined ones for null; throws BridgeError naming `what`, or `element`
// for its elements.
std::vector<at::Tensor> tensorsOf(Environment& environment, const Napi::Value& array,
                                  const char* what, const char* element);

// Adds the functions on tensors to the addon's exports.
void exportTensorFunctions(Napi::Object exports);

}  // namespace torchformer::bind
