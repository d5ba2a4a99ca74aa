// How much memory tensors hold, seen from JS and seen from libtorch.
#pragma once

#include <napi.h>

namespace torchformer::bind {

// Puts a counting allocator in front of libtorch's for the CPU, once per process.
void countNativeBytes();

void exportMemoryFunctions(Napi::Object exports);

}  // namespace torchformer::bind
