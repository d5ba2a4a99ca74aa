#pragma once

namespace torchformer::core {

/// Registers the schemas and kernels of every `torchformer::*` op with libtorch's dispatcher.
///
/// A function, not a static initializer: an exception in a static initializer ends the process, and
/// two copies of this code in one process (two installed versions of the package) do throw. Calling
/// it again from the same copy has no effect. Thread-safe.
///
/// Throws c10::Error "[ERR_NATIVE_LOAD] ..." with the paths of both copies if another one has
/// registered the ops.
void registerOps();

}  // namespace torchformer::core
