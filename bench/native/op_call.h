// Calls of dispatcher ops by name, with the defaults of their schemas.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace torchformer::bench {

using Keywords = std::map<std::string, c10::IValue>;

// The results, one after another.
inline std::vector<c10::IValue> callOp(const std::string& name,
                                       const std::vector<c10::IValue>& positional,
                                       const Keywords& keywords = {}) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "");
  std::vector<c10::IValue> stack;
  for (const c10::Argument& argument : op.schema().arguments()) {
    const auto keyword = keywords.find(argument.name());
    if (stack.size() < positional.size()) {
      stack.push_back(positional[stack.size()]);
    } else if (keyword != keywords.end()) {
      stack.push_back(keyword->second);
    } else {
      stack.push_back(argument.default_value().value_or(c10::IValue()));
    }
  }
  op.callBoxed(stack);
  return stack;
}

}  // namespace torchformer::bench
