// Faults on purpose: `npm run test:asan` has to see them reported before it believes that a run
// without a report means anything. Sanitized builds alone have this file.
#include "deliberate_fault.h"

#include <limits>
#include <vector>

#include "errors.h"
#include "js_values.h"

namespace torchformer::bind {
namespace {

// One element behind the end of a block on the heap.
Napi::Value readOutOfBounds(const Napi::CallbackInfo& info) {
  const std::vector<int> values(4, 1);
  const int* start = values.data();
  // An index that the compiler cannot know.
  return Napi::Number::New(info.Env(), start[integerOf(info[0], "index")]);
}

Napi::Value overflow(const Napi::CallbackInfo& info) {
  const auto number = static_cast<int>(integerOf(info[0], "number"));
  return Napi::Number::New(info.Env(), std::numeric_limits<int>::max() + number);
}

}  // namespace

void exportDeliberateFaults(Napi::Object exports) {
  exportFunction<readOutOfBounds>(exports, "readOutOfBounds");
  exportFunction<overflow>(exports, "overflow");
}

}  // namespace torchformer::bind
