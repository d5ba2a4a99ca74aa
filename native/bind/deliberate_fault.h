// What sanitized builds export to show that the sanitizers are at work.
#pragma once

#include <napi.h>

namespace torchformer::bind {

void exportDeliberateFaults(Napi::Object exports);

}  // namespace torchformer::bind
