#include "tools/report/pages/validate_section.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tools/picture/timeline_picture.hpp"
#include "tools/report/pages/why_picture.hpp"
#include "tools/report/reports/unit_report.hpp"
#include "tools/report/reports/validation_report.hpp"
#include "tools/report/reports/why_report.hpp"

namespace ddpsim {

ReportSection validate_section(const Validation& validation) {
  ReportSection section;
  section.title = validation.scenario.name;
  std::vector<double> errors;
  std::vector<NamedStep> steps;
  for (const ValidatedStep& step : validation.steps) {
    steps.push_back({label_of(step) + ", predicted", &step.predicted});
    steps.push_back({label_of(step) + ", measured", &step.measured});
    if (step.predicted.training.strategy != Strategy::none)
      errors.push_back(std::abs(
          in_seconds(step.predicted.metrics.step) / in_seconds(step.measured.metrics.step) - 1));
  }
  std::sort(errors.begin(), errors.end());
  if (!errors.empty())
    section.verdict = fmt::format(
        "Predicted and measured steps differ by {:.1f} % in the median and by "
        "{:.1f} % at most, over {} ({}).",
        100 * errors[errors.size() / 2], 100 * errors.back(),
        errors.size() == 1 ? "one strategy" : fmt::format("{} strategies", errors.size()),
        validation.mode);
  for (const std::string& doubt : doubts_of(validation)) section.verdict += " " + doubt + ".";
  TimelinePicture drawn = timeline_picture(validation.scenario, steps);
  section.page.add(Picture{"Predicted above measured", std::move(drawn.svg), std::move(drawn.tasks),
                           "Rank 0 of the median measured step, and the same schedule as it was "
                           "predicted."});
  section.page.add(validation_page(validation));
  section.add_notes(validation_notes(validation));
  if (auto picture = why_picture(validation.scenario, steps)) {
    section.page.add(std::move(*picture));
    section.folded.emplace_back(
        fmt::format("What exposes each {} in figures", word_for_groups(steps)),
        exposed_page(validation.scenario, steps, [](const Step&) { return nullptr; }));
  }
  return section;
}

}  // namespace ddpsim
