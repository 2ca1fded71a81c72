#pragma once

#include <string>
#include <vector>

#include "model/cost/calibration.hpp"

namespace ddpsim {

/// The share of a processor's time that other programs leave to ranks now, from 0 to 1 (backend/
/// cpu/neighbours.hpp), which takes 0.2 s. Where it cannot be asked no rank can start either, which
/// says what is lacking: 1 then.
double processor_time_left();

/// Why times that were measured are doubtful, a sentence each; none: nothing is known against them.
/// `stolen`: the share of the processors' time that the machine's host took meanwhile (steal.hpp);
/// `left_by_others`: as processor_time_left(), beside the measurement.
std::vector<std::string> machine_doubts(double stolen, double left_by_others);

/// Why measured all-reduces, by size, growing, are doubtful: a smaller one took much longer than a
/// larger one. "" where none did.
std::string all_reduce_doubt(const std::vector<AllReduceCost>& all_reduce);

}  // namespace ddpsim
