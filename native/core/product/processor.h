#pragma once

// What matrix products need to know of the processor. Nothing of libtorch: the benchmark of
// products links this too.

namespace torchformer::core {

struct Processor {
  bool isAmd = false;
  bool hasAvx2 = false;
  bool hasAvx512 = false;
  bool hasBfloat16 = false;  // products of bfloat16 factors
  bool hasVnni = false;      // sums of four products of 8-bit numbers

  /// The name of its row in the table of ways: "Intel with AVX-512", ... or "other" without AVX2.
  const char* kind() const;
};

/// The processor that this process runs on.
Processor examineProcessor();

}  // namespace torchformer::core
