#pragma once

#include <string>
#include <vector>

#include "scenarios/reader/text/settings.hpp"

namespace ddpsim {

/// Notes on the files that a scenario and the values of `set` name: those that a program wrote and
/// that have no checksum (scenarios/reader/text/seal.hpp), and those here that are called like the
/// catalogue's entry that a setting names.
std::vector<std::string> file_notes(const std::string& scenario, const std::vector<Setting>& set);

}  // namespace ddpsim
