// CUDA's faults as users need them. libtorch tells most of them by texts alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "errors.h"

namespace torchformer::bind {

// Code and message for what libtorch says of CUDA; null for all else.
std::optional<ErrorReport> describeCudaFault(std::string_view message);

}  // namespace torchformer::bind
