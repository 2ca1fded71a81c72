#pragma once

#include <string>
#include <vector>

#include "model/cost/calibration.hpp"

namespace ddpsim {

/// The share of their time that other programs leave now, from 0 to 1, to so many threads that
/// compute at once and wait their turn (backend/cpu/neighbours.hpp): one for each rank, and no more
/// than there are processors. Takes 0.2 s at most. Where it cannot be asked no rank can start
/// either, which says what is lacking: 1 then.
double processor_time_left(int threads);

/// Why times that were measured are doubtful, a sentence each; none: nothing is known against them.
/// `stolen`: the share of the processors' time that the machine's host took meanwhile (steal.hpp);
/// `left_by_others`: as processor_time_left(), beside the measurement.
std::vector<std::string> machine_doubts(double stolen, double left_by_others);

/// Why measured all-reduces, by size, growing, are doubtful: a smaller one took much longer than a
/// larger one. "" where none did.
std::string all_reduce_doubt(const std::vector<AllReduceCost>& all_reduce);

}  // namespace ddpsim
