#pragma once

#include <string>

#include "tools/report/pages/html_writer.hpp"
#include "tools/report/reports/run_report.hpp"
#include "tools/study/score.hpp"

namespace ddpsim {

/// The finding of a comparison in a sentence or two: the best strategy, what it gains over naive,
/// what stays exposed.
std::string run_verdict(const Comparison& run);

/// What `ddpsim run --report` says of one scenario: the verdict, the timelines, the tables of
/// run_page, what was predicted above what was measured where there are measured rows, the scaling
/// curves, and what exposes each bucket. `id` tells its pictures from others on the page;
/// `settings`: with what the scenario was read; `notes`: those of run_notes, to which are added
/// those on curves that the page alone has.
ReportSection run_section(const Comparison& run, const MoreOfSteps& more, const std::string& id,
                          const ScoreSettings& settings, std::vector<std::string> notes);

}  // namespace ddpsim
