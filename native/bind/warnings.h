// libtorch's warnings, which go to standard error by default, as many times as they come.
#pragma once

#include <c10/util/Exception.h>

#include <string>
#include <vector>

namespace torchformer::bind {

// While it lives, warnings of this thread are collected instead of printed.
class WarningCollector final : public c10::WarningHandler {
 public:
  explicit WarningCollector(std::vector<std::string>& messages)
      : messages_(messages), guard_(this) {}

  void process(const c10::Warning& warning) override {
    // Of a driver that does not work, by whoever counts the GPUs first, be it to seed generators:
    // programs that compute on the CPU need not hear of it, and cuda.unavailableReason() has it.
    if (warning.msg().rfind("CUDA initialization: ", 0) == 0) return;
    messages_.push_back(warning.msg());
  }

 private:
  std::vector<std::string>& messages_;
  c10::WarningUtils::WarningHandlerGuard guard_;
};

}  // namespace torchformer::bind
