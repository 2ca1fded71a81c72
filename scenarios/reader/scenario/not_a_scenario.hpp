#pragma once

#include <filesystem>

namespace ddpsim {

/// Throws InputError, with the command that makes a scenario, if `file` is what scenarios are made
/// of: the name of a model, a ready cluster or a device of the catalogue, or a Python file. A file
/// of such a name is one like others.
void check_is_no_ingredient(const std::filesystem::path& file);

}  // namespace ddpsim
