#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/predict/fit.hpp"
#include "sim/tune/tune.hpp"
#include "tools/report/pages/html_writer.hpp"
#include "tools/study/known_accuracy.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {

/// The steps that a tuning compares, and what they are predicted from.
struct TunedSteps {
  Step none;  ///< without communication
  Step standard, recommended;
  Knowledge knowledge{};
  std::optional<Fit> fit{};  ///< to measured rows
};

/// What `ddpsim tune --report` says: the verdict, the step against the cap with the bound, the
/// default and the recommendation, the timelines of both, tune_page's tables, and what exposes each
/// bucket. `notes`: what the command says besides.
ReportSection tune_section(const Scenario& scenario, const Tuning& tuning,
                           const TuneOptions& options, const TunedSteps& tuned,
                           const std::vector<std::string>& notes);

}  // namespace ddpsim
