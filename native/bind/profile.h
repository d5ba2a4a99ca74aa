// Time per op, measured with libtorch's own observer.
#pragma once

#include <napi.h>

namespace torchformer::bind {

void exportProfileFunctions(Napi::Object exports);

}  // namespace torchformer::bind
