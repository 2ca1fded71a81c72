#pragma once

#include <string>
#include <vector>

#include "scenarios/reader/text/settings.hpp"
#include "tools/study/comparison.hpp"

namespace ddpsim {

/// A note for each `--set` without which every figure of `run`, which was read from `file` with
/// `set`, is the same: a key that has no effect here, or a value that holds in any case. Keys that
/// one of the `said` notes names are left out. Each costs another prediction; where all of them
/// would take more than some tenths of a second, nothing is looked for.
std::vector<std::string> idle_settings_notes(const Comparison& run, const std::string& file,
                                             const std::vector<Setting>& set, bool laws_only,
                                             const std::vector<std::string>& said);

}  // namespace ddpsim
