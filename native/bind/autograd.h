// Backward passes and the grad mode for JS.
#pragma once

#include <napi.h>

namespace torchformer::bind {

void exportAutogradFunctions(Napi::Object exports);

}  // namespace torchformer::bind
