#pragma once

#include "element.h"

namespace torchformer::cuda {

constexpr LaunchError noSuchTypes = "there is no kernel for these element types";

/// Calls visit<From, To>() for the types that a kernel reads and writes: equal, or float32 to a
/// half type.
template <typename Visit>
LaunchError forNarrowingPairs(Element from, Element to, const Visit& visit) {
  using enum Element;
  if (from == float32 && to == float32) {
    visit.template operator()<float, float>();
  } else if (from == float64 && to == float64) {
    visit.template operator()<double, double>();
  } else if (from == bfloat16 && to == bfloat16) {
    visit.template operator()<Bfloat16, Bfloat16>();
  } else if (from == float16 && to == float16) {
    visit.template operator()<Float16, Float16>();
  } else if (from == float32 && to == bfloat16) {
    visit.template operator()<float, Bfloat16>();
  } else if (from == float32 && to == float16) {
    visit.template operator()<float, Float16>();
  } else {
    return noSuchTypes;
  }
  return launchError();
}

/// Calls visit<T>() for the type of elements.
template <typename Visit>
LaunchError forElements(Element element, const Visit& visit) {
  switch (element) {
    case Element::float32:
      visit.template operator()<float>();
      break;
    case Element::float64:
      visit.template operator()<double>();
      break;
    case Element::bfloat16:
      visit.template operator()<Bfloat16>();
      break;
    default:
      visit.template operator()<Float16>();
  }
  return launchError();
}

/// Like forNarrowingPairs, and also from a half type to float32.
template <typename Visit>
LaunchError forElementPairs(Element from, Element to, const Visit& visit) {
  using enum Element;
  if (from == bfloat16 && to == float32) {
    visit.template operator()<Bfloat16, float>();
  } else if (from == float16 && to == float32) {
    visit.template operator()<Float16, float>();
  } else {
    return forNarrowingPairs(from, to, visit);
  }
  return launchError();
}

}  // namespace torchformer::cuda
