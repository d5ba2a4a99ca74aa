#pragma once

#include <torch/library.h>

namespace torchformer::cuda {

/// The ops of the namespace torchformer_graph: begin(device) -> number, end(number, is_whole),
/// replay(number), release(number). Between begin and end, this thread's work for the GPU is
/// captured, not executed.
void defineGraphs(torch::Library& library);

}  // namespace torchformer::cuda
