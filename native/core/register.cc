#include "core/register.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>

#include <memory>
#include <string>

#include "core/decode/decode_ops.h"
#include "core/device/activation_dropout.h"
#include "core/device/device_op.h"
#include "core/device/dropout.h"
#include "core/device/embed.h"
#include "core/device/linear_cross_entropy.h"
#include "core/device/multiply.h"
#include "core/device/norm.h"
#include "core/ops/ops.h"
#include "core/support/check.h"

namespace torchformer::core {

namespace {

/// The file that this code was loaded from. The dispatcher stores the "source file" of a
/// registration for its messages; ours is this path, so that another copy can name the one loaded
/// first.
const std::string& ownPath() {
  static const std::string path = [] {
    // A variable, not a function, whose address may be that in another copy.
    static const char inThisCopy = 0;
    Dl_info info;
    const bool found = dladdr(&inThisCopy, &info) != 0;
    return std::string(found && info.dli_fname != nullptr ? info.dli_fname : "torchformer");
  }();
  return path;
}

std::unique_ptr<torch::Library> registerAll() {
  const auto existing = c10::Dispatcher::singleton().findSchema({"torchformer::layer_norm", ""});
  TF_CHECK(ERR_NATIVE_LOAD, !existing.has_value(),
           "the torchformer ops are in this process already (", existing->debug(),
           "); a second copy cannot be loaded from ", ownPath(),
           ". Make the installation hold one copy of the package (npm ls torchformer).");

  // Never destroyed either; if it throws, another copy in the process has registered it.
  static torch::Library* const deviceLibrary = [] {
    auto made = std::make_unique<torch::Library>(torch::Library::DEF, deviceNamespace, std::nullopt,
                                                 ownPath().c_str(), /*line=*/0);
    defineNormDeviceOps(*made);
    defineDroppingDeviceOps(*made);
    defineAdamRowsDeviceOp(*made);
    defineEmbedDeviceOps(*made);
    defineActivationDropoutDeviceOp(*made);
    defineLossDeviceOp(*made);
    defineMultiplyDeviceOp(*made);
    defineSeedOps(*made);
    return made.release();
  }();
  (void)deviceLibrary;
  static torch::Library* const decodeLibrary = [] {
    auto made = std::make_unique<torch::Library>(torch::Library::DEF, decodeNamespace, std::nullopt,
                                                 ownPath().c_str(), /*line=*/0);
    defineDecodeOps(*made);
    return made.release();
  }();
  (void)decodeLibrary;

  auto library = std::make_unique<torch::Library>(torch::Library::DEF, "torchformer", std::nullopt,
                                                  ownPath().c_str(), /*line=*/0);
  registerLayerNorm(*library);
  registerRmsNorm(*library);
  registerAttention(*library);
  registerFeedForward(*library);
  registerDropout(*library);
  registerLinearCrossEntropy(*library);
  registerPackedAttention(*library);
  registerAdafactor(*library);
  registerAdamRows(*library);
  registerEmbed(*library);
  registerLinear(*library);
  registerAddNorm(*library);
  return library;
}

}  // namespace

void registerOps() {
  // Never destroyed: at process exit other threads may still be inside an op, and the dispatcher is
  // destroyed separately. If registerAll throws, the static stays unset and nothing stays
  // registered, because Library removes its registrations.
  static const torch::Library* const library = registerAll().release();
  (void)library;
}

}  // namespace torchformer::core
