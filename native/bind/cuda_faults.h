// CUDA errors as users need them. libtorch identifies most of them only by their messages.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "errors.h"

namespace torchformer::bind {

// Code and message for libtorch's errors of CUDA; null for all others.
std::optional<ErrorReport> describeCudaFault(std::string_view message);

}  // namespace torchformer::bind
