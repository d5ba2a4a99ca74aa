// Entry of the Node addon: one environment's data and the list of exported functions.
#include <napi.h>

#include <memory>

#include "../core/register.h"
#include "autograd.h"
#include "bound_op.h"
#ifdef TORCHFORMER_SANITIZE
#include "deliberate_fault.h"
#endif
#include "devices.h"
#include "environment.h"
#include "environment_functions.h"
#include "errors.h"
#include "js_callback.h"
#include "memory.h"
#include "profile.h"
#include "tensor_handle.h"

namespace torchformer::bind {
namespace {

Napi::Object initializeAddon(Napi::Env env, Napi::Object exports) {
  try {
    // Ops live in the process-wide dispatcher: a second copy of this file is refused here.
    torchformer::core::registerOps();
    countNativeBytes();
    env.SetInstanceData(std::make_unique<Environment>(env).release());
  } catch (...) {
    throw makeError(env, std::current_exception());
  }
  exportEnvironmentFunctions(exports);
  exportDeviceFunctions(exports);
  exportDispatcherFunctions(exports);
  exportTensorFunctions(exports);
  exportAutogradFunctions(exports);
  exportMemoryFunctions(exports);
  exportProfileFunctions(exports);
  exportCallbackFunctions(exports);
#ifdef TORCHFORMER_SANITIZE
  exportDeliberateFaults(exports);
#endif
  return exports;
}

}  // namespace
}  // namespace torchformer::bind

using torchformer::bind::initializeAddon;
NODE_API_MODULE(torchformer, initializeAddon)
