#include "emulator.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <exception>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace torchformer::cuda::host {

namespace {

constexpr int lanes = 32;
constexpr std::size_t stackBytes = 64 * 1024;
constexpr std::size_t slotBytes = 16;

enum class Wait { none, block, warp, ended };

/// Starts with its context and continues with a jump, because each context switch is a system call.
struct Fiber {
  ucontext_t context;
  jmp_buf jump;
  bool isStarted = false;
  dim3 place;
  Wait wait = Wait::none;
};

/// Kept for the next launch.
thread_local std::vector<std::unique_ptr<std::byte[]>> stacks;

/// The threads of one block.
class Block {
 public:
  Block(dim3 size, const std::function<void()>& body)
      : size_(size), fibers_(std::size_t{size.x} * size.y * size.z), body_(body) {
    slots_.resize(fibers_.size());
    order_.resize(fibers_.size());
    if (stacks.size() < fibers_.size()) stacks.resize(fibers_.size());
    for (std::size_t i = 0; i < fibers_.size(); ++i) {
      if (!stacks[i]) stacks[i] = std::make_unique_for_overwrite<std::byte[]>(stackBytes);
      order_[i] = i;
    }
  }

  void run(std::mt19937& random) {
    // A fixed order would hide a missing barrier.
    std::shuffle(order_.begin(), order_.end(), random);
    failure_ = nullptr;
    for (std::size_t i = 0; i < fibers_.size(); ++i) start(i);
    while (true) {
      bool ran = false;
      for (const auto index : order_) {
        if (fibers_[index].wait != Wait::none) continue;
        resume(index);
        ran = true;
      }
      if (failure_) std::rethrow_exception(failure_);
      if (std::all_of(fibers_.begin(), fibers_.end(),
                      [](const Fiber& fiber) { return fiber.wait == Wait::ended; })) {
        return;
      }
      if (!ran && !release()) {
        throw std::runtime_error(
            "emulated kernel: some threads wait at a barrier that the others "
            "of their block or warp do not reach");
      }
    }
  }

  void wait(Wait kind) {
    auto& fiber = fibers_[current_];
    fiber.wait = kind;
    if (_setjmp(fiber.jump) == 0) _longjmp(scheduler_, 1);
  }

  void exchange(void* value, std::size_t bytes, int from) {
    if (bytes > slotBytes) throw std::logic_error("emulated shuffle: the value is too large");
    const auto first = current_ / lanes * lanes;
    std::memcpy(slots_[current_].data(), value, bytes);
    wait(Wait::warp);
    const auto source = first + static_cast<std::size_t>(from);
    if (source < slots_.size()) std::memcpy(value, slots_[source].data(), bytes);
    // No thread may write the next value before all have read this one.
    wait(Wait::warp);
  }

  std::size_t current() const { return current_; }

 private:
  static void entry();

  void start(std::size_t index) {
    auto& fiber = fibers_[index];
    const auto number = static_cast<unsigned>(index);
    fiber.place = dim3(number % size_.x, number / size_.x % size_.y, number / size_.x / size_.y);
    fiber.wait = Wait::none;
    fiber.isStarted = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stacks[index].get();
    fiber.context.uc_stack.ss_size = stackBytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, &Block::entry, 0);
  }

  void resume(std::size_t index) {
    current_ = index;
    auto& fiber = fibers_[index];
    threadIdx = fiber.place;
    if (_setjmp(scheduler_) != 0) return;
    if (fiber.isStarted) _longjmp(fiber.jump, 1);
    fiber.isStarted = true;
    setcontext(&fiber.context);
  }

  /// Opens the barriers that all have reached. Returns false if there are none.
  bool release() {
    const auto open = [&](std::size_t begin, std::size_t end, Wait kind) {
      bool any = false;
      for (auto i = begin; i < end; ++i) {
        if (fibers_[i].wait == kind)
          any = true;
        else if (fibers_[i].wait != Wait::ended)
          return false;
      }
      for (auto i = begin; any && i < end; ++i) {
        if (fibers_[i].wait == kind) fibers_[i].wait = Wait::none;
      }
      return any;
    };
    bool opened = open(0, fibers_.size(), Wait::block);
    for (std::size_t first = 0; first < fibers_.size(); first += lanes) {
      opened |= open(first, std::min(first + lanes, fibers_.size()), Wait::warp);
    }
    return opened;
  }

  dim3 size_;
  std::vector<Fiber> fibers_;
  std::vector<std::array<std::byte, slotBytes>> slots_;
  std::vector<std::size_t> order_;
  std::size_t current_ = 0;
  jmp_buf scheduler_;
  const std::function<void()>& body_;
  std::exception_ptr failure_;
};

thread_local Block* running = nullptr;

void Block::entry() {
  Block& block = *running;
  try {
    block.body_();
  } catch (...) {
    block.failure_ = std::current_exception();
  }
  block.fibers_[block.current_].wait = Wait::ended;
  _longjmp(block.scheduler_, 1);
}

}  // namespace

void launch(dim3 grid, dim3 block, const std::function<void()>& body) {
  // CUDA's limits, so that kernels that run here can be launched on a GPU.
  const auto threads = std::size_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
      grid.y > 65535 || grid.z > 65535) {
    throw std::runtime_error("emulated kernel: a grid or block of this size cannot be launched");
  }
  gridDim = grid;
  blockDim = block;
  Block threadsOfBlock(block, body);
  std::mt19937 random(17);
  running = &threadsOfBlock;
  try {
    for (unsigned z = 0; z < grid.z; ++z) {
      for (unsigned y = 0; y < grid.y; ++y) {
        for (unsigned x = 0; x < grid.x; ++x) {
          blockIdx = dim3(x, y, z);
          threadsOfBlock.run(random);
        }
      }
    }
  } catch (...) {
    running = nullptr;
    throw;
  }
  running = nullptr;
}

void waitForBlock() { running->wait(Wait::block); }

void exchangeInWarp(void* value, std::size_t bytes, int from) {
  running->exchange(value, bytes, from);
}

int laneOfThread() { return static_cast<int>(running->current() % lanes); }

float toFloat(Bfloat16 value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }

Bfloat16 toBfloat16(float value) {
  if (std::isnan(value)) return {0x7FC0};
  const auto bits = std::bit_cast<uint32_t>(value);
  return {static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)};
}

float toFloat(Float16 value) {
  const float sign = (value.bits & 0x8000) != 0 ? -1.0F : 1.0F;
  const int exponent = (value.bits >> 10) & 0x1F;
  const auto fraction = static_cast<float>(value.bits & 0x3FF);
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024.0F + fraction, exponent - 25);
}

Float16 toFloat16(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float size = std::fabs(value);
  if (std::isnan(value)) return {static_cast<uint16_t>(sign | 0x7E00)};
  // 65520 is halfway between the largest number and what would be the next one.
  if (size >= 65520.0F) return {static_cast<uint16_t>(sign | 0x7C00)};
  int exponent = 0;
  std::frexp(size, &exponent);
  // In units of the last place; nearbyint rounds ties to even.
  const int place = std::max(exponent - 11, -24);
  const auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, -place)));
  // A rounded-up 2048 carries into the exponent automatically.
  const auto bits = steps < 1024 ? steps : steps - 1024 + (static_cast<uint32_t>(place + 25) << 10);
  return {static_cast<uint16_t>(sign | bits)};
}

}  // namespace torchformer::cuda::host
