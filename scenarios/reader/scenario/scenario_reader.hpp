#pragma once

#include <filesystem>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/settings.hpp"

namespace ddpsim {

struct MapDescription;

/// The keys of a scenario.
const MapDescription& scenario_keys();

/// Reads a scenario file, with keys replaced as `--set` asks; or the file of a workload profile or
/// a workload description, as read_profile_as_scenario does. Throws InputError: one line with
/// file:line:column, what was expected and what to write.
Scenario read_scenario(const std::filesystem::path& file,
                       const std::vector<Setting>& overrides = {});

/// Is it a workload profile (`format: ddpsim.workload/1`) or a workload description (`/2`) rather
/// than a scenario? Throws InputError if it cannot be read.
bool is_workload_profile(const std::filesystem::path& file);

/// A scenario of nothing but such a file and the keys given, which must say what the cluster is.
/// What the profile itself may have `measured`, on some other cluster, is left out. One rank
/// averages nothing: it compares `none` alone unless `compare` is given.
Scenario read_profile_as_scenario(const std::filesystem::path& profile,
                                  const std::vector<Setting>& overrides);

}  // namespace ddpsim
