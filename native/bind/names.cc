#include "names.h"

#include <array>
#include <utility>

namespace torchformer::bind {
namespace {

template <typename Value>
using NamedValue = std::pair<std::string_view, Value>;

constexpr std::array kScalarTypes = {
    NamedValue<c10::ScalarType>{"float32", c10::ScalarType::Float},
    NamedValue<c10::ScalarType>{"float64", c10::ScalarType::Double},
    NamedValue<c10::ScalarType>{"float16", c10::ScalarType::Half},
    NamedValue<c10::ScalarType>{"bfloat16", c10::ScalarType::BFloat16},
    NamedValue<c10::ScalarType>{"int8", c10::ScalarType::Char},
    NamedValue<c10::ScalarType>{"int16", c10::ScalarType::Short},
    NamedValue<c10::ScalarType>{"int32", c10::ScalarType::Int},
    NamedValue<c10::ScalarType>{"int64", c10::ScalarType::Long},
    NamedValue<c10::ScalarType>{"uint8", c10::ScalarType::Byte},
    NamedValue<c10::ScalarType>{"bool", c10::ScalarType::Bool},
    NamedValue<c10::ScalarType>{"uint16", c10::ScalarType::UInt16},
    NamedValue<c10::ScalarType>{"uint32", c10::ScalarType::UInt32},
    NamedValue<c10::ScalarType>{"uint64", c10::ScalarType::UInt64},
    NamedValue<c10::ScalarType>{"complex64", c10::ScalarType::ComplexFloat},
    NamedValue<c10::ScalarType>{"complex128", c10::ScalarType::ComplexDouble},
};

constexpr std::array kLayouts = {
    NamedValue<c10::Layout>{"strided", c10::Layout::Strided},
    NamedValue<c10::Layout>{"sparse_coo", c10::Layout::Sparse},
    NamedValue<c10::Layout>{"sparse_csr", c10::Layout::SparseCsr},
};

constexpr std::array kMemoryFormats = {
    NamedValue<c10::MemoryFormat>{"contiguous_format", c10::MemoryFormat::Contiguous},
    NamedValue<c10::MemoryFormat>{"preserve_format", c10::MemoryFormat::Preserve},
    NamedValue<c10::MemoryFormat>{"channels_last", c10::MemoryFormat::ChannelsLast},
    NamedValue<c10::MemoryFormat>{"channels_last_3d", c10::MemoryFormat::ChannelsLast3d},
};

template <typename Table>
auto lookUp(const Table& table, std::string_view name)
    -> std::optional<typename Table::value_type::second_type> {
  for (const auto& [known, value] : table) {
    if (known == name) return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<c10::ScalarType> scalarTypeOf(std::string_view name) {
  return lookUp(kScalarTypes, name);
}

std::string nameOf(c10::ScalarType type) {
  for (const auto& [name, value] : kScalarTypes) {
    if (value == type) return std::string(name);
  }
  return c10::toString(type);
}

std::optional<c10::Layout> layoutOf(std::string_view name) { return lookUp(kLayouts, name); }

std::optional<c10::MemoryFormat> memoryFormatOf(std::string_view name) {
  return lookUp(kMemoryFormats, name);
}

std::string scalarTypeNames() {
  std::string names;
  for (const auto& [name, value] : kScalarTypes) {
    if (!names.empty()) names += ", ";
    names += name;
  }
  return names;
}

}  // namespace torchformer::bind
