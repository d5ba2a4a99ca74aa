#pragma once

#include <torch/library.h>

// One function a file of ops: defines the schemas of that file and registers their kernels.

namespace torchformer::core {

void registerLayerNorm(torch::Library& library);
void registerRmsNorm(torch::Library& library);
void registerAttention(torch::Library& library);
void registerFeedForward(torch::Library& library);
void registerDropout(torch::Library& library);
void registerLinearCrossEntropy(torch::Library& library);
void registerPackedAttention(torch::Library& library);
void registerAdamRows(torch::Library& library);
void registerEmbed(torch::Library& library);
void registerLinear(torch::Library& library);
void registerAddNorm(torch::Library& library);

/// Device ops (device_op.h) that only the file of their op calls.
void defineAdamRowsDeviceOp(torch::Library& library);

}  // namespace torchformer::core
