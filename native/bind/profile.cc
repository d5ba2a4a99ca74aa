// Time per op, measured with libtorch's own observer (at::RecordFunction): all ops that the
// dispatcher runs, ours, ATen's and those of the backward pass, on all threads of the process.
#include "profile.h"

#include <ATen/record_function.h>

#include <chrono>
#include <map>
#include <mutex>
#include <optional>

#include "errors.h"
#include "js_values.h"

namespace torchformer::bind {
namespace {

using Clock = std::chrono::steady_clock;

struct Total {
  int64_t calls = 0;
  Clock::duration self{};  // without nested ops
};

/// One profile at a time: the observer sees the whole process.
struct Profile {
  std::mutex mutex;
  std::optional<at::CallbackHandle> observer;
  std::map<std::string, Total> totals;
};

Profile& profile() {
  // Never destroyed: other threads may still run ops while the process ends.
  static Profile* const instance = new Profile;
  return *instance;
}

/// A running op. The running ops of one thread are nested.
struct Running : at::ObserverContext {
  Clock::time_point start;
  Clock::duration inside{};
  Running* outer;
};

thread_local Running* innermost = nullptr;

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction&) {
  auto running = std::make_unique<Running>();
  running->outer = innermost;
  innermost = running.get();
  running->start = Clock::now();
  return running;
}

void leave(const at::RecordFunction& function, at::ObserverContext* context) {
  auto* const running = static_cast<Running*>(context);
  const auto elapsed = Clock::now() - running->start;
  innermost = running->outer;
  if (running->outer != nullptr) running->outer->inside += elapsed;
  Profile& shared = profile();
  const std::lock_guard lock(shared.mutex);
  Total& total = shared.totals[function.name()];
  ++total.calls;
  total.self += elapsed - running->inside;
}

Napi::Value startProfile(const Napi::CallbackInfo& info) {
  Profile& shared = profile();
  const std::lock_guard lock(shared.mutex);
  if (shared.observer) {
    throw BridgeError("ERR_ARGUMENT", "startProfile: a profile is running already");
  }
  shared.totals.clear();
  shared.observer = at::addGlobalCallback(
      at::RecordFunctionCallback(enter, leave)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  return info.Env().Undefined();
}

Napi::Value stopProfile(const Napi::CallbackInfo& info) {
  Profile& shared = profile();
  std::map<std::string, Total> totals;
  {
    const std::lock_guard lock(shared.mutex);
    if (!shared.observer) throw BridgeError("ERR_ARGUMENT", "stopProfile: no profile is running");
    at::removeCallback(*shared.observer);
    shared.observer.reset();
    totals.swap(shared.totals);
  }
  const auto result = Napi::Array::New(info.Env(), totals.size());
  uint32_t index = 0;
  for (const auto& [name, total] : totals) {
    const auto entry = Napi::Object::New(info.Env());
    entry.Set("op", name);
    entry.Set("calls", static_cast<double>(total.calls));
    entry.Set("milliseconds", std::chrono::duration<double, std::milli>(total.self).count());
    result.Set(index++, entry);
  }
  return result;
}

}  // namespace

void exportProfileFunctions(Napi::Object exports) {
  exportFunction<startProfile>(exports, "startProfile");
  exportFunction<stopProfile>(exports, "stopProfile");
}

}  // namespace torchformer::bind
