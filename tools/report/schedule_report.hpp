#pragma once

#include <string>

#include "model/scenario/scenario.hpp"
#include "sim/predict/step.hpp"
#include "tools/report/page.hpp"

namespace ddpsim {

/// What `ddpsim schedule` prints of a step: hooks in firing order, buckets, how many tasks of each
/// kind, and, if `tasks`, every one. `which` says which step it is, if there are several.
Page schedule_page(const Scenario& scenario, const Step& step, bool tasks,
                   const std::string& which = {});

/// "ddpsim.schedule/1", of one step.
Record schedule_record(const Scenario& scenario, const Step& step);

}  // namespace ddpsim
