// Entry point of the Node addon: the data of one environment and the exported functions.
#include <napi.h>

#include <memory>

#include "../core/register.h"
#include "autograd.h"
#include "bound_op.h"
#include "call_frame.h"
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
    // Ops are registered in the process-wide dispatcher, so a second copy of the addon fails here.
    torchformer::core::registerOps();
    countNativeBytes();
    env.SetInstanceData(std::make_unique<Environment>(env).release());
  } catch (...) {
    throw makeError(env, std::current_exception());
  }
  exportEnvironmentFunctions(exports);
  exportDeviceFunctions(exports);
  exportDispatcherFunctions(exports);
  exportFrameFunctions(exports);
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
