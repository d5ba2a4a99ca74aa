#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <cstdio>

#include "op_call.h"
#include "parts.h"
#include "timing.h"

namespace torchformer::bench {

void printCalls(int rounds) {
  const at::Tensor a = at::randn({4, 4});
  const at::Tensor b = at::randn({4, 4});
  const auto add = c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor");
  std::vector<c10::IValue> stack;
  const std::vector<Work> works = {
      [&] { at::add(a, b); },
      // As in the bridge: arguments on a stack that is reused.
      [&] {
        stack.clear();
        stack.emplace_back(a);
        stack.emplace_back(b);
        stack.emplace_back(1);
        add.callBoxed(stack);
      },
      [&] {
        const at::NoGradGuard noGrad;
        at::add(a, b);
      },
  };
  const char* const ways[] = {"at::add", "callBoxed of aten::add.Tensor",
                              "at::add without recording gradients"};
  // The calls are short, so more rounds cost nothing.
  const std::vector<Timing> timings = timingsOf(works, 5 * rounds);
  for (size_t i = 0; i < works.size(); i++) {
    std::printf("%s{\"way\":\"%s\",", i == 0 ? "[" : ",", ways[i]);
    printTiming("seconds", timings[i]);
    std::printf("}");
  }
  std::printf("]");
}

}  // namespace torchformer::bench
