#pragma once

#include <torch/library.h>

namespace torchformer::core {

/// Ops of decoding, called by the package itself only.
constexpr const char* decodeNamespace = "torchformer_decode";

void defineDecodeOps(torch::Library& library);

}  // namespace torchformer::core
