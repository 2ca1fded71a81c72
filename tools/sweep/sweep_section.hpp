#pragma once

#include "tools/report/html_writer.hpp"
#include "tools/sweep/sweep_results.hpp"

namespace ddpsim {

/// What `ddpsim sweep --report` says: the shortest step, a picture that fits one or two varied keys
/// (curves by strategy, or a map of each strategy's steps), and sweep_page's tables, `tables`.
ReportSection sweep_section(const Sweep& sweep, const PointResults& results, Page tables);

}  // namespace ddpsim
