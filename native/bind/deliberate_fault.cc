// Deliberate faults: `npm run test:asan` first checks that they are reported, since otherwise a run
// without reports would mean nothing. Only sanitized builds contain this file.
#include "deliberate_fault.h"

#include <limits>
#include <vector>

#include "errors.h"
#include "js_values.h"

namespace torchformer::bind {
namespace {

// Reads one element past the end of a heap block.
Napi::Value readOutOfBounds(const Napi::CallbackInfo& info) {
  const std::vector<int> values(4, 1);
  const int* start = values.data();
  // The compiler must not know the index.
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
