#include "cuda_faults.h"

#include <array>

namespace torchformer::bind {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The text between two others, or from the first one to the end; empty if it is missing.
std::string between(std::string_view text, std::string_view before, std::string_view after) {
  const size_t found = text.find(before);
  if (found == std::string_view::npos) return {};
  const size_t start = found + before.size();
  return std::string(text.substr(start, text.find(after, start) - start));
}

// "CUDA error: <what>\nSearch for `cudaError…' in https://…": the message of CUDA itself.
std::string_view withoutAdvice(std::string_view message) {
  return message.substr(0, message.find('\n'));
}

constexpr std::string_view kSmaller =
    "Use a smaller batch, or free tensors; cuda.memory() shows what is in use";

ErrorReport outOfMemory(std::string_view message) {
  const std::string asked = between(message, "Tried to allocate ", ". ");
  const std::string gpu = between(message, "GPU ", " has a total capacity");
  const std::string total = between(message, "has a total capacity of ", " of which");
  const std::string free = between(message, " of which ", " is free");
  std::string text;
  if (asked.empty() || total.empty() || free.empty()) {
    text = std::string(withoutAdvice(message));
    while (!text.empty() && text.back() == '.') text.pop_back();
  } else {
    text = "cuda:" + gpu + " is out of memory: " + asked + " were asked for, " + free + " of " +
           total + " are free";
  }
  return {"ERR_OUT_OF_MEMORY", text + ". " + std::string(kSmaller)};
}

// After these, no CUDA call works in this process, and later calls report the same error again.
constexpr std::array<std::string_view, 15> kFatal = {
    "device-side assert triggered",
    "an illegal memory access was encountered",
    "misaligned address",
    "an illegal instruction was encountered",
    "invalid program counter",
    "operation not supported on global/shared address space",
    "hardware stack error",
    "unspecified launch failure",
    "the launch timed out and was terminated",
    "uncorrectable ECC error encountered",
    "unknown error",
    "Invalid access of peer GPU memory over nvlink or a hardware error",
    "tensor memory",
    "context is destroyed",
    "driver shutting down",
};

// No GPU, or not this one, can be used, whatever the program does.
constexpr std::array<std::string_view, 14> kUnavailable = {
    "Found no NVIDIA driver",
    "NVIDIA driver on your system is too old",
    "driver version is insufficient",
    "No CUDA GPUs are available",
    "CUDA driver initialization failed",
    "CUDA unknown error",
    "no CUDA-capable device is detected",
    "CUDA-capable device(s) is/are busy or unavailable",
    "no kernel image is available",
    "CUDA driver is a stub library",
    "API call is not supported in the installed CUDA driver",
    "unsupported display driver / cuda driver combination",
    "initialization error",
    "the provided PTX was compiled with an unsupported toolchain",
};

template <size_t count>
bool containsOne(std::string_view text, const std::array<std::string_view, count>& parts) {
  for (const std::string_view part : parts) {
    if (contains(text, part)) return true;
  }
  return false;
}

// The driver reports CUDA 12.4 as 12040.
std::string cudaVersion(const std::string& number) {
  if (number.size() < 4 || number.size() > 6 ||
      number.find_first_not_of("0123456789") != std::string::npos)
    return {};
  const int version = std::stoi(number);
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// The links in libtorch's advice do not help here.
std::string unavailable(std::string_view message) {
  const std::string_view line = withoutAdvice(message);
  if (contains(line, "Found no NVIDIA driver")) return "no NVIDIA driver works on this system";
  if (contains(line, "driver on your system is too old") ||
      contains(line, "driver version is insufficient")) {
    const std::string version = cudaVersion(between(line, "(found version ", ")"));
    return "the NVIDIA driver of this system is too old for this libtorch" +
           (version.empty() ? "" : " (it supports CUDA up to " + version + ")") +
           "; install a newer one";
  }
  if (contains(line, "No CUDA GPUs are available") || contains(line, "no CUDA-capable device")) {
    return "the NVIDIA driver finds no GPU";
  }
  if (contains(line, "no kernel image is available")) {
    return "this libtorch has no code for this kind of GPU";
  }
  if (contains(line, "CUDA unknown error") || contains(line, "CUDA driver initialization failed")) {
    return "the NVIDIA driver does not start";
  }
  return std::string(line);
}

ErrorReport lost(std::string_view line) {
  return {"ERR_CUDA_LOST",
          std::string(line) +
              ". This process can no longer use CUDA: restart it. The fault may come from an "
              "earlier call than the one that failed; with CUDA_LAUNCH_BLOCKING=1 in the "
              "environment it is the very one"};
}

}  // namespace

std::optional<ErrorReport> describeCudaFault(std::string_view message) {
  if (contains(message, "CUDA out of memory") || contains(message, "CUBLAS_STATUS_ALLOC_FAILED") ||
      message.rfind("CUDA error: out of memory", 0) == 0) {
    return outOfMemory(message);
  }
  if (containsOne(message, kUnavailable)) {
    return ErrorReport{"ERR_CUDA_UNAVAILABLE", unavailable(message)};
  }
  if (message.rfind("CUDA error: ", 0) != 0 && message.rfind("CUDA driver error: ", 0) != 0) {
    return std::nullopt;
  }
  const std::string_view line = withoutAdvice(message);
  if (containsOne(line, kFatal)) return lost(line);
  if (contains(line, "invalid device ordinal")) {
    return ErrorReport{"ERR_DEVICE", "there is no GPU with this index (" + std::string(line) + ")"};
  }
  return ErrorReport{"ERR_NATIVE", std::string(line)};
}

}  // namespace torchformer::bind
