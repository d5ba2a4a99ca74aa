// What the addon tells of GPUs and asks of them.
#pragma once

#include <napi.h>

namespace torchformer::bind {

void exportDeviceFunctions(Napi::Object exports);

}  // namespace torchformer::bind
