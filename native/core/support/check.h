#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <optional>

// Argument checks of the torchformer ops.
//
// Every op checks all its arguments before its first ATen call: ATen trusts some of them, and what
// it trusts wrongly can read out of bounds. A failed check throws a c10::Error whose message starts
// with a stable code in brackets ("[ERR_SHAPE] ..."), which bindings turn into their own errors.

/// Throws c10::Error("[code] parts...") unless `condition` holds. `code` is a bare word such as
/// ERR_SHAPE; the message parts are built only when the check fails.
#define TF_CHECK(code, condition, ...)                                                 \
  do {                                                                                 \
    if (!(condition)) [[unlikely]] {                                                   \
      ::torchformer::core::fail({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, \
                                ::c10::str("[" #code "] ", __VA_ARGS__));              \
    }                                                                                  \
  } while (false)

namespace torchformer::core {

[[noreturn]] void fail(c10::SourceLocation location, std::string message);

/// A tensor the ops can compute with: defined, dense (strided), float16, bfloat16, float32 or
/// float64. `op` and `name` are for the message.
void checkFloating(const char* op, const char* name, const at::Tensor& tensor);

/// Same dtype and device as `like`; `tensor` itself must be dense too.
void checkMatches(const char* op, const char* name, const at::Tensor& tensor, const char* likeName,
                  const at::Tensor& like);

/// A parameter of `like`: as checkMatches, but it may be float32 where `like` is a half type.
void checkParameter(const char* op, const char* name, const at::Tensor& tensor,
                    const char* likeName, const at::Tensor& like);

/// A probability in [0, 1]; NaN is refused.
void checkProbability(const char* op, const char* name, double probability);

/// The small number a norm adds so that it never divides by 0: positive and finite in the
/// arithmetic that `tensor` is normalised in (half types: float32); NaN is refused.
void checkEpsilon(const char* op, const char* name, double epsilon, const at::Tensor& tensor);

/// A generator, when given, must be a CPU one: masks are made from a seed drawn there, whatever
/// device they are for.
void checkGenerator(const char* op, const std::optional<at::Generator>& generator);

}  // namespace torchformer::core
