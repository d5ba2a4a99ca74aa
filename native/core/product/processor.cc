#include "core/product/processor.h"

namespace torchformer::core {

Processor examineProcessor() {
  Processor processor;
#if defined(__x86_64__)
  __builtin_cpu_init();
  processor.isAmd = __builtin_cpu_is("amd");
  processor.hasAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  processor.hasAvx512 = processor.hasAvx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  processor.hasBfloat16 = processor.hasAvx512 && __builtin_cpu_supports("avx512bf16");
  processor.hasVnni = processor.hasAvx512 && __builtin_cpu_supports("avx512vnni");
#endif
  return processor;
}

const char* Processor::kind() const {
  if (!hasAvx2) return "other";
  // Zhaoxin and others that have the instructions count as Intel's.
  if (isAmd) return hasAvx512 ? "AMD with AVX-512" : "AMD with AVX2";
  return hasAvx512 ? "Intel with AVX-512" : "Intel with AVX2";
}

}  // namespace torchformer::core
