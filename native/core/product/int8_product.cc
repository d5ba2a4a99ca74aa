#include "core/product/int8_product.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/round.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "core/loops/for_each_row.h"
#include "core/loops/quantize_row.h"
#include "core/product/panels.h"
#include "core/product/processor.h"
#include "core/product/tile_kernel.h"
#include "core/support/check.h"
#include "core/support/thread_team.h"

namespace torchformer::core {

namespace {

/// Input features that an instruction takes at once.
constexpr int64_t group = 4;

/// Activations of a product, rounded.
struct Rounded {
  std::vector<int8_t> numbers;  // [rows][groups * 4]
  std::vector<float> scales;
  std::vector<int32_t> sums;
};

Rounded& roundedOfThread() {
  static thread_local Rounded rounded;
  return rounded;
}

}  // namespace

const Int8Kernel* int8Kernel() {
#if defined(__x86_64__)
  static const Int8Kernel* const kernel = []() -> const Int8Kernel* {
    const auto processor = examineProcessor();
    // As for float32, where TORCHFORMER_GEMM may say so.
    const bool takesAvx2 = tileKernel<float>() == &avx2KernelFloat();
    if (processor.hasVnni && !takesAvx2) return &vnniInt8Kernel();
    return processor.hasAvx2 ? &avx2Int8Kernel() : nullptr;
  }();
  return kernel;
#else
  return nullptr;
#endif
}

const Int8Kernel* int8KernelNamed(const char* op, std::string_view name) {
#if defined(__x86_64__)
  const auto processor = examineProcessor();
  if (name == "avx2" && processor.hasAvx2) return &avx2Int8Kernel();
  if (name == "vnni" && processor.hasVnni) return &vnniInt8Kernel();
#endif
  TF_CHECK(ERR_ARGUMENT, false, op, ": this processor has no kernel '", std::string(name), "'");
  return nullptr;
}

Int8Weight packInt8(const Int8Kernel& kernel, const at::Tensor& weight) {
  Int8Weight packed{weight.size(0), weight.size(1), {}, {}};
  const auto highest = at::amax(weight.abs(), {1});
  // A row of zeros needs no scale.
  packed.scale = at::where(highest == 0, at::ones_like(highest),
                           highest / static_cast<double>(kernel.mostWeight));
  const auto numbers = at::round(weight / packed.scale.unsqueeze(1)).contiguous();
  const auto groups = ceilDivide(packed.in, group);
  const auto panels = ceilDivide(packed.out, kernel.columns);
  // Beyond the last feature, weights of 0.
  packed.panels = at::full({panels * groups * kernel.columns * group}, kernel.offset,
                           at::TensorOptions().dtype(at::kByte));
  auto* const bytes = packed.panels.mutable_data_ptr<uint8_t>();
  const auto* const from = numbers.const_data_ptr<float>();
  forEachRow({packed.out, packed.in}, [&](int64_t row) {
    auto* const panel = bytes + row / kernel.columns * groups * kernel.columns * group;
    for (int64_t k = 0; k < packed.in; ++k) {
      const auto place = (k / group * kernel.columns + row % kernel.columns) * group + k % group;
      panel[place] =
          static_cast<uint8_t>(static_cast<int32_t>(from[row * packed.in + k]) + kernel.offset);
    }
  });
  return packed;
}

void multiplyInt8(const Int8Kernel& kernel, const Int8Weight& weight, const float* x, int64_t rows,
                  float* y, int64_t yStride, const float* bias, bool relu, bool adds) {
  if (rows == 0) return;
  const auto groups = ceilDivide(weight.in, group);
  const auto stride = groups * group;
  auto& rounded = roundedOfThread();
  rounded.numbers.resize(std::max(rounded.numbers.size(), static_cast<size_t>(rows * stride)));
  rounded.scales.resize(std::max(rounded.scales.size(), static_cast<size_t>(rows)));
  rounded.sums.resize(std::max(rounded.sums.size(), static_cast<size_t>(rows)));
  auto* const numbers = rounded.numbers.data();
  auto* const scales = rounded.scales.data();
  auto* const sums = rounded.sums.data();
  forEachRow({rows, weight.in}, [&](int64_t row) {
    const auto found = quantizeRow(x + row * weight.in, weight.in, numbers + row * stride, stride);
    scales[row] = found.scale;
    sums[row] = kernel.offset * found.sum;
  });
  const auto* const panels = weight.panels.const_data_ptr<uint8_t>();
  const auto* const columnScales = weight.scale.const_data_ptr<float>();
  const auto panelBytes = groups * kernel.columns * group;
  // Tiles of almost equal size.
  const auto tiles = ceilDivide(rows, kernel.rows);
  const auto widest = kernel.panelsAtOnce(ceilDivide(rows, tiles));
  const auto panelCount = ceilDivide(weight.out, kernel.columns);
  /// The tiles of all rows and `together` panels.
  const auto multiplyPanels = [&](int64_t first, int64_t together) {
    const auto column = first * kernel.columns;
    const auto columns = std::min(together * kernel.columns, weight.out - column);
    const auto* const panel = panels + first * panelBytes;
    const Int8Finish finish{columnScales + column, bias == nullptr ? nullptr : bias + column, relu,
                            adds};
    // The panels stay in the cache for all rows.
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const auto row = tile * rows / tiles;
      const auto end = (tile + 1) * rows / tiles;
      kernel.multiply({numbers + row * stride, stride, scales + row, sums + row, panel, groups,
                       end - row, columns, y + row * yStride + column, yStride,
                       panel + panelBytes + tile * panelBytes / tiles, panelBytes / tiles / groups,
                       finish});
    }
  };
  const bool isLarge = rows * weight.in * weight.out > workForThreads;
  const auto threads = isLarge ? threadCount() : 1;
  // A thread takes neighboring panels, whose weights the processor then fetches ahead.
  const auto neighbors = std::max(widest, panelCount / (4 * threads) / widest * widest);
  std::atomic<int64_t> next{0};
  onThreads(threads, [&] {
    for (int64_t first;
         (first = next.fetch_add(neighbors, std::memory_order_relaxed)) < panelCount;) {
      const auto end = std::min(panelCount, first + neighbors);
      for (auto panel = first; panel < end;) {
        const auto left = end - panel;
        const auto together = panelsTogether(left, widest);
        multiplyPanels(panel, together);
        panel += together;
      }
    }
  });
}

}  // namespace torchformer::core
