#include "core/support/check.h"

#include <limits>
#include <string>
#include <utility>

#include "core/support/precision.h"

namespace torchformer::core {

void fail(c10::SourceLocation location, std::string message) {
  throw c10::Error(location, std::move(message));
}

namespace {

void checkDense(const char* op, const char* name, const at::Tensor& tensor) {
  TF_CHECK(ERR_ARGUMENT, tensor.defined(), op, ": ", name, " must be a tensor, got none");
  TF_CHECK(ERR_ARGUMENT, tensor.layout() == at::kStrided && !tensor.is_nested(), op, ": ", name,
           " must be a dense tensor, got layout ", tensor.layout(),
           tensor.is_nested() ? " (nested)" : "");
}

}  // namespace

void checkFloating(const char* op, const char* name, const at::Tensor& tensor) {
  checkDense(op, name, tensor);
  const auto dtype = tensor.scalar_type();
  TF_CHECK(
      ERR_DTYPE,
      dtype == at::kFloat || dtype == at::kDouble || dtype == at::kBFloat16 || dtype == at::kHalf,
      op, ": ", name, " must be float16, bfloat16, float32 or float64, got ", dtype);
}

void checkMatches(const char* op, const char* name, const at::Tensor& tensor, const char* likeName,
                  const at::Tensor& like) {
  checkDense(op, name, tensor);
  TF_CHECK(ERR_DTYPE, tensor.scalar_type() == like.scalar_type(), op, ": ", name,
           " must have the dtype of ", likeName, " (", like.scalar_type(), "), got ",
           tensor.scalar_type());
  TF_CHECK(ERR_DEVICE, tensor.device() == like.device(), op, ": ", name,
           " must be on the device of ", likeName, " (", like.device(), "), got ", tensor.device());
}

void checkParameter(const char* op, const char* name, const at::Tensor& tensor,
                    const char* likeName, const at::Tensor& like) {
  checkDense(op, name, tensor);
  const bool isWider = isHalf(like) && tensor.scalar_type() == at::kFloat;
  if (!isWider || tensor.device() != like.device()) {
    checkMatches(op, name, tensor, likeName, like);
  }
}

void checkProbability(const char* op, const char* name, double probability) {
  // Written so that NaN fails the check.
  TF_CHECK(ERR_ARGUMENT, probability >= 0.0 && probability <= 1.0, op, ": ", name,
           " must be a probability from 0 to 1, got ", probability);
}

void checkEpsilon(const char* op, const char* name, double epsilon, const at::Tensor& tensor) {
  // If it were 0 in the arithmetic used, a row of equal values would be 0 / 0.
  const double smallest = tensor.scalar_type() == at::kDouble
                              ? std::numeric_limits<double>::min()
                              : static_cast<double>(std::numeric_limits<float>::min());
  TF_CHECK(ERR_ARGUMENT, epsilon >= smallest && epsilon <= std::numeric_limits<float>::max(), op,
           ": ", name, " must be a positive finite number, got ", epsilon);
}

void checkGenerator(const char* op, const std::optional<at::Generator>& generator) {
  if (!generator.has_value() || !generator->defined()) return;
  TF_CHECK(ERR_DEVICE, generator->device().is_cpu(), op,
           ": generator must be a CPU generator, on every device, got one for ",
           generator->device());
}

}  // namespace torchformer::core
