#pragma once

#include <string>

#include "scenarios/reader/format/format.hpp"

namespace ddpsim {

/// The JSON Schema (draft 2020-12) of a format, as editors take it to check and complete YAML. It
/// refuses what the description of the format refuses, at the same value or mapping: types, units,
/// ranges, names, unknown and missing keys, keys that exclude each other. What depends on other
/// files or on the workload only the reader knows: beside a `system` or a `base` a mapping may be a
/// part of what that has, such as `inter_node: {nics: 4}`.
std::string json_schema(const Format& format);

}  // namespace ddpsim
