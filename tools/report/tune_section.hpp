#pragma once

#include "sim/tune/tune.hpp"
#include "tools/report/html_writer.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {

/// What `ddpsim tune --report` says: the verdict, the step against the cap with the bound, the
/// default and the recommendation, the timelines of both, and tune_page's tables. `steps`: the step
/// with the default buckets and with the recommended ones.
ReportSection tune_section(const Scenario& scenario, const Tuning& tuning,
                           const TuneOptions& options, const std::vector<NamedStep>& steps);

}  // namespace ddpsim
