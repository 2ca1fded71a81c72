#include "tools/report/pages/scaling_section.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tools/picture/plot.hpp"

namespace ddpsim {
namespace {

/// One curve a strategy of what `value` says of its points.
template <typename Value>
Plot over_ranks(const std::vector<ScalingCurve>& curves, std::string title, std::string y_label,
                Value value) {
  Plot plot;
  plot.title = title;
  plot.description = fmt::format("{}, against the number of ranks.", title);
  plot.x_label = "ranks";
  plot.y_label = std::move(y_label);
  plot.log_x = true;
  plot.x_text = [](double ranks) { return fmt::format("{:.0f}", ranks); };
  for (const ScalingCurve& curve : curves) {
    Curve line;
    line.name = curve.label;
    line.dashed = curve.strategy == Strategy::none;
    line.ink = ink_of_strategy(std::string(name_of(curve.strategy)));
    for (const ScalingPoint& point : curve.points) {
      line.points.emplace_back(point.ranks(), value(point));
      if (&curve == &curves.front()) plot.x_ticks.push_back(point.ranks());
    }
    plot.curves.push_back(std::move(line));
  }
  return plot;
}

}  // namespace

void add_scaling_pictures(Page& page, const std::vector<ScalingCurve>& curves,
                          const Knowledge& knowledge) {
  if (curves.empty() || curves.front().points.size() < 2) return;
  Plot steps = over_ranks(curves, "Step over ranks", "step, ms",
                          [](const ScalingPoint& point) { return in_ms(point.step); });
  // Only the last curve whose steps were measured has a band: the others' would lie on it.
  const auto known = std::find_if(curves.rbegin(), curves.rend(), [&](const ScalingCurve& each) {
    return knowledge.about(each.strategy).has_value();
  });
  const bool has_band = known != curves.rend();
  const KnownAccuracy accuracy = has_band ? *knowledge.about(known->strategy) : KnownAccuracy();
  std::string shaded;
  if (has_band) {
    Curve& curve = steps.curves[static_cast<std::size_t>(curves.rend() - known) - 1];
    shaded = curve.name;
    for (const auto& [ranks, step] : curve.points)
      curve.band.emplace_back(step * (1 - accuracy.median_error),
                              step * (1 + accuracy.median_error));
  }
  page.add(Picture{
      steps.title, plot_picture(steps), "",
      has_band ? fmt::format("Each rank keeps its batch. The shaded range around {} is the median "
                             "error: half of such predictions were off by at most {:.1f} %, on {} "
                             "measured rows ({}).",
                             shaded, 100 * accuracy.median_error, accuracy.rows, accuracy.rows_of)
               : "Each rank keeps its batch. How far such predictions are off is not known."});
  Plot efficiency = over_ranks(curves, "Scaling efficiency", "% of ranks that train alone",
                               [](const ScalingPoint& point) { return 100 * point.efficiency; });
  efficiency.half = true;
  page.add(Picture{efficiency.title, plot_picture(efficiency), "",
                   "The step of one rank that trains by itself, over the step.", true});
  if (!curves.front().points.front().samples_per_second) return;
  const bool tokens = curves.front().points.front().tokens_per_second.has_value();
  const auto rate_of = [&](const ScalingPoint& point) {
    return tokens ? point.tokens_per_second.value_or(0) : point.samples_per_second.value_or(0);
  };
  Plot rate = over_ranks(curves, tokens ? "Tokens per second" : "Samples per second",
                         tokens ? "tokens/s" : "samples/s", rate_of);
  rate.half = rate.log_y = true;
  Curve alone{"each rank as fast as one alone", {}, true, false, {}, "copy"};
  const ScalingPoint& one = curves.front().points.front();
  for (const ScalingPoint& point : curves.front().points)
    alone.points.emplace_back(point.ranks(), rate_of(one) * point.ranks() / one.ranks());
  rate.curves.push_back(std::move(alone));
  page.add(Picture{rate.title, plot_picture(rate), "",
                   "Of all ranks together; both scales are logarithmic.", true});
}

}  // namespace ddpsim
