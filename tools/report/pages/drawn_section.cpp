#include "tools/report/pages/drawn_section.hpp"

#include <fmt/format.h>

#include "model/base/statistics.hpp"
#include "tools/picture/plot.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {

void add_seeds_picture(Page& page, const Comparison& run, const std::vector<DrawnSteps>& drawn) {
  if (drawn.empty() || drawn.front().count() < 2) return;
  Plot plot;
  plot.title = "Steps of all seeds";
  plot.description = "The length of a step, against the share of the steps that are no longer.";
  plot.x_label = "% of the steps are no longer";
  plot.y_label = "step, ms";
  for (std::size_t s = 0; s < drawn.size(); ++s) {
    const Training& training = run.compared[s].training;
    Curve curve;
    curve.name = short_strategy_label(training);
    curve.dashed = training.strategy == Strategy::none;
    curve.ink = ink_of_strategy(std::string(name_of(training.strategy)));
    for (int percent = 0; percent <= 100; ++percent)
      curve.points.emplace_back(percent, quantile(drawn[s].step_ms, percent / 100.0));
    plot.curves.push_back(std::move(curve));
  }
  page.add(Picture{plot.title, plot_picture(plot), "",
                   fmt::format("{} steps, the ranks' computing times drawn anew in each.",
                               drawn.front().count())});
}

}  // namespace ddpsim
