// The addon's functions on the environment.
#pragma once

#include <napi.h>

namespace torchformer::bind {

void exportEnvironmentFunctions(Napi::Object exports);

}  // namespace torchformer::bind
