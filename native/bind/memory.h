// Memory of tensors, as seen by JS and by libtorch.
#pragma once

#include <napi.h>

namespace torchformer::bind {

// Wraps libtorch's CPU allocator in one that counts, once per process.
void countNativeBytes();

void exportMemoryFunctions(Napi::Object exports);

}  // namespace torchformer::bind
