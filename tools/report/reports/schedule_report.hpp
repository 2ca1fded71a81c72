#pragma once

#include <optional>
#include <string>

#include "model/scenario/scenario.hpp"
#include "sim/predict/step.hpp"
#include "sim/predict/step_sequence.hpp"
#include "tools/report/writers/page.hpp"
#include "tools/study/known_accuracy.hpp"

namespace ddpsim {

/// What `ddpsim schedule` prints of a step: hooks in firing order, buckets, how many tasks of each
/// kind, and, if `tasks`, every one. `which` says which step it is, if there are several.
/// `knowledge`: what it is predicted from.
Page schedule_page(const Scenario& scenario, const Step& step, bool tasks,
                   const Knowledge& knowledge, const std::string& which = {});

/// The buckets of a step, in launch order, and when each is under way.
Table buckets_table(const Scenario& scenario, const Step& step);

/// "ddpsim.schedule/1", of one step.
Record schedule_record(const Scenario& scenario, const Step& step);

/// The steps `ddpsim schedule` shows: the one of `training`, or of so many consecutive ones from
/// the first on each that differs from those before it.
ConsecutiveSteps scheduled_steps(const StepModel& model, const Training& training,
                                 std::optional<int> steps_asked);
/// The page of these steps, below one another.
Page schedule_page(const Scenario& scenario, const ConsecutiveSteps& steps,
                   std::optional<int> steps_asked, bool tasks, const Knowledge& knowledge);
/// What each task of these steps does to which memory (model/program/text.hpp).
Page program_page(const ConsecutiveSteps& steps);
/// "ddpsim.schedule/1" of the first of them, with every kind of step if several were asked for.
Record schedule_record(const Scenario& scenario, const ConsecutiveSteps& steps,
                       std::optional<int> steps_asked);

}  // namespace ddpsim
