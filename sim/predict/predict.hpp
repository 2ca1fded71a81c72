#pragma once

#include <memory>
#include <span>

#include "model/scenario/scenario.hpp"
#include "sim/engine/price.hpp"
#include "sim/predict/planned_step.hpp"
#include "sim/predict/step.hpp"
#include "sim/predict/step_model.hpp"

namespace ddpsim {

/// One step of `training`, of ranks that are all alike; of all that have different work (ZeRO's
/// hooks); of those that compute otherwise (CostModel::exceptions); and, where one rank is known to
/// be slower (CostModel::slowest_rank), of that one beside them, or in the place of the one with
/// the least work (simulated_ranks.hpp). Job and figures are those of a typical rank, or where
/// ranks have different work of rank 0, but the step ends with the last rank's.
/// Throws std::invalid_argument as plan_step does, or if the step would be longer than six hours.
Step predict(const StepModel& model, const Training& training);

/// A step that was planned for `training` from the works of a StepModel.
Step predict(const CostModel& costs, const Training& training,
             std::shared_ptr<const PlannedStep> planned);

/// Is there a slower rank that decides how long a step is by itself? Of GPUs it does, if no rank is
/// an exception: their hosts take alike, so it is never earlier than a typical one. Who simulates
/// it alone leaves out what a typical rank's kernels do to a collective while the slowest computes
/// nothing, seldom more than a few in a thousand: of four thousand random steps, with factors of up
/// to 3, five were too short by more than that, one by 4 %. Where launches come later beside
/// collectives it may be more, and both ranks count.
bool slowest_rank_decides(const CostModel& costs);

/// How long that step is, and how long it communicates: its StepMetrics::step and ::communication.
/// Nothing else of it is worked out, so that fits may ask often; where slowest_rank_decides, that
/// rank alone is simulated.
Duration step_length(const CostModel& costs, const PlannedStep& planned);
Duration communication_length(const CostModel& costs, const PlannedStep& planned);

/// The length of the step after `change` was applied to what its works cost a typical rank, for the
/// ranks that `predict` simulates.
Duration step_length(const CostModel& costs, const PlannedStep& planned, const CostChange& change);

/// Time is counted in picoseconds, in 64 bits: far beyond any step, but not beyond every scenario.
inline constexpr std::chrono::hours longest_simulated{6};
/// `seconds`: what a step takes on one stream. Throws std::invalid_argument if a step would be
/// longer than that.
void check_length(double seconds);

/// The model of a scenario's steps, scaled to its measured `times` where it gives some.
StepModel model_of(const Scenario& scenario);

}  // namespace ddpsim
