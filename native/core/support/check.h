#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <optional>

// Argument checks of the torchformer ops.
//
// Every op checks all its arguments before its first ATen call: ATen does not check some of them,
// and may then read out of bounds. A failed check throws a c10::Error whose message starts with a
// stable code in brackets ("[ERR_SHAPE] ..."), which bindings convert to their own errors.

/// Throws c10::Error("[code] parts...") unless `condition` holds. `code` is an unquoted identifier
/// such as ERR_SHAPE; the message parts are evaluated only if the check fails.
#define TF_CHECK(code, condition, ...)                                                 \
  do {                                                                                 \
    if (!(condition)) [[unlikely]] {                                                   \
      ::torchformer::core::fail({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, \
                                ::c10::str("[" #code "] ", __VA_ARGS__));              \
    }                                                                                  \
  } while (false)

namespace torchformer::core {

[[noreturn]] void fail(c10::SourceLocation location, std::string message);

/// Checks that the ops can compute with a tensor: defined, dense (strided), and float16, bfloat16,
/// float32 or float64. `op` and `name` are for the message.
void checkFloating(const char* op, const char* name, const at::Tensor& tensor);

/// Same dtype and device as `like`; `tensor` itself must be dense too.
void checkMatches(const char* op, const char* name, const at::Tensor& tensor, const char* likeName,
                  const at::Tensor& like);

/// A parameter of `like`: like checkMatches, but it may be float32 if `like` is a half type.
void checkParameter(const char* op, const char* name, const at::Tensor& tensor,
                    const char* likeName, const at::Tensor& like);

/// A probability in [0, 1]; NaN is rejected.
void checkProbability(const char* op, const char* name, double probability);

/// The small number a norm adds so that it never divides by 0: positive and finite in the
/// arithmetic in which `tensor` is normalised (half types: float32); NaN is rejected.
void checkEpsilon(const char* op, const char* name, double epsilon, const at::Tensor& tensor);

/// A generator, if given, must be a CPU generator: masks are made from a seed drawn on the CPU,
/// whatever their device.
void checkGenerator(const char* op, const std::optional<at::Generator>& generator);

}  // namespace torchformer::core
