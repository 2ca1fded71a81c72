#pragma once

#include <string>

#include "tools/report/page.hpp"
#include "tools/study/validation.hpp"

namespace ddpsim {

/// Both sides for people: steps, streams, where the difference comes from, buckets, pictures.
Page validation_page(const Validation& validation);

/// Steps predicted and measured, a row for each strategy and what varies: what `--csv` writes.
Table validation_rows(const Validation& validation);

/// "bucketed, 4 MiB, comm_hook: fp16_compress, no_sync: true": what a row of it is called.
std::string label_of(const ValidatedStep& step);

/// A line of text if so much of the processors' time was stolen that the figures are doubtful, and
/// one if other programs left so little of a processor (backend/cpu/neighbours.hpp).
std::string doubt_about(double stolen, double left_by_others);

}  // namespace ddpsim
