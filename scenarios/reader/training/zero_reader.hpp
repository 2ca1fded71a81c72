#pragma once

#include "model/parallel/training.hpp"
#include "scenarios/reader/format/map.hpp"

namespace ddpsim {

// `training.zero1`, `zero2` and `zero3`: whose ZeRO it is, and its options under the names that
// their projects have for them. A key of another variant is refused.

const Map<ZeroSettings>& zero1_map();
const Map<ZeroSettings>& zero2_map();
const Map<ZeroSettings>& zero3_map();

}  // namespace ddpsim
