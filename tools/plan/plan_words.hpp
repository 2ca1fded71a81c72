#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/plan/plan.hpp"

namespace ddpsim {

/// What a plan is asked for, as people write it; "" is what it does by itself.
struct PlanWords {
  std::string gpus{};        ///< "8..64*2", "8,24"
  std::string batches{};     ///< likewise
  std::string strategies{};  ///< "bucketed,fsdp"
  std::string best = "10";   ///< how many are printed
};

/// Throws InputError, which names the flag of `ddpsim plan`.
PlanRequest plan_request(const std::string& file, const std::vector<Setting>& set, bool laws_only,
                         const PlanWords& words);

/// How many candidates are printed. Throws InputError.
std::size_t most_planned_rows(const PlanWords& words);

}  // namespace ddpsim
