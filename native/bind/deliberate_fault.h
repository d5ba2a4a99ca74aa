// Functions of sanitized builds that show that the sanitizers work.
#pragma once

#include <napi.h>

namespace torchformer::bind {

void exportDeliberateFaults(Napi::Object exports);

}  // namespace torchformer::bind
