#pragma once

#include <cstddef>
#include <string>

#include "tools/plan/plan.hpp"
#include "tools/report/writers/page.hpp"

namespace ddpsim {

/// What `ddpsim plan` prints: the `most` quickest candidates, the cheapest likewise where these are
/// others, what fell out and why, and what to write into the scenario.
Page plan_page(const TrainingPlan& plan, std::size_t most);

/// "ddpsim.plan/1": all candidates.
Record plan_record(const TrainingPlan& plan);
Table plan_table(const TrainingPlan& plan);

/// Why no candidate can be chosen: "no combination fits ..."; "" where one can.
std::string nothing_fits_text(const TrainingPlan& plan);

}  // namespace ddpsim
