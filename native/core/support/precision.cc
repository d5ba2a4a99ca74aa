#include "core/support/precision.h"

#include <string>

#include "core/support/check.h"

namespace torchformer::core {

at::ScalarType resultType(const char* op, std::string_view results, const at::Tensor& input) {
  const auto own = input.scalar_type();
  if (results == "own") return own;
  TF_CHECK(ERR_ARGUMENT, results == "bfloat16" || results == "float16", op,
           ": results must be 'own', 'bfloat16' or 'float16', got '", std::string(results), "'");
  // float64 is never reduced in precision.
  if (own == at::kDouble) return own;
  return results == "bfloat16" ? at::kBFloat16 : at::kHalf;
}

}  // namespace torchformer::core
