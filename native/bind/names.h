// PyTorch's names of dtypes, layouts and memory formats, both ways.
#pragma once

#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <string_view>

namespace torchformer::bind {

std::optional<c10::ScalarType> scalarTypeOf(std::string_view name);
std::string nameOf(c10::ScalarType type);
std::optional<c10::Layout> layoutOf(std::string_view name);
std::optional<c10::MemoryFormat> memoryFormatOf(std::string_view name);

// For error messages: "float32, float64, ...".
std::string scalarTypeNames();

}  // namespace torchformer::bind
