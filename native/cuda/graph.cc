// CUDA graphs: the launches of a step are captured once and then submitted to the GPU together.
//
// Capturing needs a separate stream, on which nothing may synchronize. libtorch's CUDAGraph keeps
// the memory of the captured work separate, and advances the GPU's generator at each replay.

#if !defined(TORCHFORMER_CUDA_EMULATED)

#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <memory>
#include <mutex>

#include "core/support/check.h"
#include "graph.h"

namespace torchformer::cuda {

namespace {

struct Recording {
  std::unique_ptr<at::cuda::CUDAGraph> graph;
  c10::Stream streamBefore;
  c10::Device deviceBefore;
};

/// The graphs of the process by number.
class Graphs {
 public:
  static Graphs& instance() {
    // Never destroyed: at exit the driver may already be unloaded.
    static Graphs* const graphs = std::make_unique<Graphs>().release();
    return *graphs;
  }

  int64_t begin(int64_t device) {
    const c10::impl::VirtualGuardImpl gpu(c10::DeviceType::CUDA);
    const c10::Device place(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device));
    const auto deviceBefore = gpu.exchangeDevice(place);
    // Earlier work must be complete before another stream continues with its results.
    gpu.synchronizeDevice(place.index());
    const std::lock_guard lock(mutex_);
    // One stream for all captures on a device, because libraries keep memory for each stream.
    const auto found = streams_.find(place.index());
    const auto stream = found != streams_.end()
                            ? found->second
                            : gpu.getStreamFromGlobalPool(place, /*isHighPriority=*/false);
    streams_.emplace(place.index(), stream);
    const auto streamBefore = gpu.exchangeStream(stream);
    auto graph = std::make_unique<at::cuda::CUDAGraph>();
    try {
      // All use the memory pool of the first one, because they are replayed one at a time. The pool
      // is freed with the last graph. Other threads may continue their work.
      if (graphs_.empty()) pool_ = {0, 0};
      graph->capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    } catch (...) {
      gpu.exchangeStream(streamBefore);
      gpu.setDevice(deviceBefore);
      throw;
    }
    if (graphs_.empty()) pool_ = graph->pool();
    graphs_.emplace(++last_, Recording{std::move(graph), streamBefore, deviceBefore});
    return last_;
  }

  /// Also called after an error, when the captured work is discarded.
  void end(int64_t number, bool isWhole) {
    auto& recording = at(number);
    const c10::impl::VirtualGuardImpl gpu(c10::DeviceType::CUDA);
    std::exception_ptr fault;
    try {
      recording.graph->capture_end();
    } catch (...) {
      fault = std::current_exception();
    }
    gpu.exchangeStream(recording.streamBefore);
    gpu.setDevice(recording.deviceBefore);
    if (!fault && isWhole) return;
    release(number);
    if (fault && isWhole) std::rethrow_exception(fault);
  }

  void replay(int64_t number) { at(number).graph->replay(); }

  void release(int64_t number) {
    const std::lock_guard lock(mutex_);
    graphs_.erase(number);
  }

 private:
  Recording& at(int64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = graphs_.find(number);
    TF_CHECK(ERR_ARGUMENT, found != graphs_.end(), "there is no CUDA graph ", number);
    return found->second;
  }

  std::mutex mutex_;
  std::map<int64_t, Recording> graphs_;
  int64_t last_ = 0;
  c10::MempoolId_t pool_ = {0, 0};
  std::map<c10::DeviceIndex, c10::Stream> streams_;
};

int64_t begin(int64_t device) { return Graphs::instance().begin(device); }
void end(int64_t graph, bool isWhole) { Graphs::instance().end(graph, isWhole); }
void replay(int64_t graph) { Graphs::instance().replay(graph); }
void release(int64_t graph) { Graphs::instance().release(graph); }

}  // namespace

void defineGraphs(torch::Library& library) {
  const auto define = [&](const char* schema, auto&& function) {
    library.def(schema, torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd,
                                        std::forward<decltype(function)>(function)));
  };
  define("begin(int device) -> int", TORCH_FN(begin));
  define("end(int graph, bool is_whole) -> ()", TORCH_FN(end));
  define("replay(int graph) -> ()", TORCH_FN(replay));
  define("release(int graph) -> ()", TORCH_FN(release));
}

}  // namespace torchformer::cuda

#endif
