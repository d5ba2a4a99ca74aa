// The addon's functions for GPUs.
#pragma once

#include <napi.h>

namespace torchformer::bind {

void exportDeviceFunctions(Napi::Object exports);

}  // namespace torchformer::bind
