// Ops of the dispatcher as JS functions: looked up by name once, called by schema.
#pragma once

#include <napi.h>

namespace torchformer::bind {

// Adds `listOps`, `overloads`, `bind` and `kernels` to the addon's exports.
void exportDispatcherFunctions(Napi::Object exports);

}  // namespace torchformer::bind
