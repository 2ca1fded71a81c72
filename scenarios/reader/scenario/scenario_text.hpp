#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

/// The YAML of a scenario file with keys replaced as `--set` asks. Read in the same folder, and
/// with its name, it says what the file and the settings say. Comments and anchors are not kept:
/// each mapping stands where it counts. Of a workload profile or description the text is a scenario
/// that names the file. Throws InputError as reading does, of what can be told without reading all
/// of it.
std::string scenario_text(const std::filesystem::path& file, const std::vector<Setting>& settings);

}  // namespace ddpsim
