// Collects libtorch's warnings, which by default are all printed to standard error.
#pragma once

#include <c10/util/Exception.h>

#include <string>
#include <vector>

namespace torchformer::bind {

// While this exists, warnings of this thread are collected instead of printed.
class WarningCollector final : public c10::WarningHandler {
 public:
  explicit WarningCollector(std::vector<std::string>& messages)
      : messages_(messages), guard_(this) {}

  void process(const c10::Warning& warning) override {
    // The warning about a driver that does not work comes when the GPUs are first counted, for
    // example to seed generators. Programs on the CPU do not need it, and cuda.unavailableReason()
    // returns it.
    if (warning.msg().rfind("CUDA initialization: ", 0) == 0) return;
    messages_.push_back(warning.msg());
  }

 private:
  std::vector<std::string>& messages_;
  c10::WarningUtils::WarningHandlerGuard guard_;
};

}  // namespace torchformer::bind
