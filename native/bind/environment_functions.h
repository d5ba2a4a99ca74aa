// The addon's functions for the environment.
#pragma once

#include <napi.h>

namespace torchformer::bind {

void exportEnvironmentFunctions(Napi::Object exports);

}  // namespace torchformer::bind
