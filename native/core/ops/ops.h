#pragma once

#include <torch/library.h>

#include <string>

// One function per file of ops: defines the schemas of that file and registers their kernels.

namespace torchformer::core {

void registerLayerNorm(torch::Library& library);
void registerRmsNorm(torch::Library& library);
void registerAttention(torch::Library& library);
void registerFeedForward(torch::Library& library);
void registerDropout(torch::Library& library);
void registerLinearCrossEntropy(torch::Library& library);
void registerPackedAttention(torch::Library& library);
void registerAdafactor(torch::Library& library);
void registerAdamRows(torch::Library& library);
void registerEmbed(torch::Library& library);
void registerLinear(torch::Library& library);
void registerAddNorm(torch::Library& library);

/// Defines `name` with a kernel for all devices, and `name`_reference, the same in plain ops, which
/// libtorch's autograd differentiates.
///
/// `kernel` is called both with and without autograd: mustRecord returns whether it must record.
template <typename Kernel, typename Reference>
void defineOp(torch::Library& library, const std::string& name, const std::string& signature,
              Kernel kernel, Reference reference) {
  library.def((name + signature).c_str());
  // The result of an op without its own Autograd kernel would require a gradient but have none.
  for (const auto key : {c10::DispatchKey::CompositeExplicitAutograd, c10::DispatchKey::Autograd}) {
    library.impl(name.c_str(), torch::dispatch(key, Kernel(kernel)));
  }
  const auto plain = name + "_reference";
  library.def((plain + signature).c_str());
  library.impl(plain.c_str(),
               torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, std::move(reference)));
}

/// Device ops (device/device_op.h) that are called only by the file of their op.
void defineAdamRowsDeviceOp(torch::Library& library);

}  // namespace torchformer::core
