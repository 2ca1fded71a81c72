#pragma once

#include <string>

#include "model/cost/calibration.hpp"

namespace ddpsim {

/// In what the ranks that run now (`here`, of which only the provenance counts) are others than
/// those that measured a calibration: "2 ranks there, 3 here; backend: threads there, gloo here".
/// Compares ranks, backend, host and kernel, processor, link and libraries, and leaves out what the
/// calibration does not say; what another program measured (ddpsim.profile) names links and
/// libraries in other words, and there the processor alone is compared, without what it has
/// counted. "" where nothing differs.
std::string differences_from(const Calibration& calibration, const Calibration& here);

}  // namespace ddpsim
