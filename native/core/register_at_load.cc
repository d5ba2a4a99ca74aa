// Only for libtorchformer_core.so, the ops without Node.js: loading the library registers them, as
// Python's torch.ops.load_library and plain C++ programs expect. The addon calls registerOps()
// itself, where it can catch exceptions.

#include "core/register.h"

namespace {

[[maybe_unused]] const bool registered = [] {
  torchformer::core::registerOps();
  return true;
}();

}  // namespace
