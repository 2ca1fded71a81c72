#pragma once

#include <cstdint>
#include <string_view>

#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

/// What a file of YAML can be. Where a model is expected, a workload profile and a workload
/// description are welcome too.
enum class FileKind : std::uint8_t {
  scenario,
  model,
  profile,
  description,
  link,
  calibration,
  cluster,
  device,
  host,
  operations
};

/// A key with a value as such a file has: "bandwidth: 400 Gbit/s" of a link.
std::string_view example_of(FileKind kind);

/// Throws InputError, with what the file is and how it is given, if the file of this mapping is of
/// another kind than is read here. A file is what its key `format` says; without that key it is
/// what most of its keys belong to. A file that might be several things is left to its reader.
/// `named`: the value that names the file, at whose place the error is; null: the user did, as what
/// a command reads.
void check_kind(const Yaml& root, FileKind expected, const Yaml* named = nullptr);

}  // namespace ddpsim
