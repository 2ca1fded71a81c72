#pragma once

#include "tools/study/machine_checks.hpp"

namespace ddpsim {

/// Whether all that `run` and `tune` read of the catalogue is there: `missing` without its folder
/// or a whole kind of entries, `doubtful` where single files cannot be read, accuracy.csv among
/// them: the first of them are named, with the place and what is wrong there.
MachineCheck check_catalogue();

}  // namespace ddpsim
