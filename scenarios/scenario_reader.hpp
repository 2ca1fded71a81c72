#pragma once

#include <filesystem>
#include <vector>

#include "model/scenario.hpp"
#include "scenarios/input_error.hpp"

namespace ddpsim {

/// Reads a scenario file, with keys replaced as `--set` asks. Throws InputError: one line with
/// file:line:column, what was expected and what to write.
Scenario read_scenario(const std::filesystem::path& file,
                       const std::vector<std::pair<std::string, std::string>>& overrides = {});

}  // namespace ddpsim
