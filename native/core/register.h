#pragma once

namespace torchformer::core {

/// Registers the schemas and kernels of every `torchformer::*` op with libtorch's dispatcher.
///
/// A plain call, not a static initializer: what a static initializer throws ends the process, and
/// two copies of this code in one process (two installed versions of the package) do throw. Calling
/// it again from the same copy does nothing. Thread-safe.
///
/// Throws c10::Error "[ERR_NATIVE_LOAD] ..." with the paths of both copies when another one has
/// registered the ops.
void registerOps();

}  // namespace torchformer::core
