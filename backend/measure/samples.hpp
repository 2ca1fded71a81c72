#pragma once

#include <vector>

#include "backend/backend.hpp"
#include "model/cost/calibration.hpp"

namespace ddpsim {

/// A set of repeated measurements in three figures. Throws std::invalid_argument if there are none.
Spread spread_of(std::vector<Duration> samples);

Duration sum_of(const std::vector<Duration>& times);
Duration mean_of(const std::vector<Duration>& times);

/// Everyone's times, one rank after the other; and their mean. These communicate.
std::vector<Duration> gathered(Backend& backend, const std::vector<Duration>& mine);
Duration mean_over_ranks(Backend& backend, Duration mine);

}  // namespace ddpsim
