#pragma once

#include <vector>

#include "model/parallel/user_hook.hpp"
#include "scenarios/reader/format/format.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

/// What `training.hooks` may be.
Type user_hooks_type();

/// `training.hooks`: a list of {kind: {parameter or layer: pattern, ...}}, with the parameters and
/// layers of `workload` that each pattern names. Throws InputError, also for a pattern that matches
/// nothing.
std::vector<UserHook> read_user_hooks(const Yaml& given, const Workload& workload);

/// Indices of the parameters that `given`, a name with * for any text, names: one at least, or
/// InputError.
std::vector<std::int32_t> parameters_named(const Yaml& given, const Workload& workload);

}  // namespace ddpsim
