#include "tools/report/pages/tune_section.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tools/picture/plot.hpp"
#include "tools/picture/timeline_picture.hpp"
#include "tools/report/pages/why_picture.hpp"
#include "tools/report/reports/tune_report.hpp"
#include "tools/report/reports/why_report.hpp"
#include "tools/study/settings.hpp"

namespace ddpsim {
namespace {

double in_bytes(Bytes size) {
  return static_cast<double>(size.count);
}

/// The band: how far the step may lie off where all-reduces and kernels may, by the corners'
/// spread around the prediction.
std::vector<std::pair<double, double>> curve_band(const Tuning& tuning, const Curve& curve) {
  if (tuning.advice.corners.empty()) return {};
  const Corner& predicted = tuning.advice.corners.front();
  double low = 1, high = 1;
  for (const Corner& corner : tuning.advice.corners) {
    const double factor = in_seconds(corner.recommended) / in_seconds(predicted.recommended);
    low = std::min(low, factor);
    high = std::max(high, factor);
  }
  std::vector<std::pair<double, double>> band;
  for (const auto& [cap, step] : curve.points) band.emplace_back(step * low, step * high);
  return band;
}

Picture caps_picture(const Scenario& scenario, const Tuning& tuning, const TuneOptions& options) {
  Plot plot;
  plot.title = "Step against bucket cap";
  plot.description = fmt::format(
      "The predicted step of {} for every bucket cap that makes other buckets.", scenario.name);
  plot.x_label = "bucket cap";
  plot.y_label = "step, ms";
  plot.log_x = true;
  plot.x_text = [](double bytes) {
    return to_string(Bytes{static_cast<std::int64_t>(std::llround(bytes))});
  };
  Curve curve{"step", {}, false, true, {}};
  for (const Choice& choice : tuning.caps) {
    if (choice.cap.count <= 0) continue;
    curve.points.emplace_back(in_bytes(choice.cap), in_ms(choice.step));
  }
  if (!curve.points.empty()) {
    // The smallest cap is any that closes a bucket with each gradient.
    if (curve.points.size() > 1)
      curve.points.front().first = std::max(curve.points.front().first, curve.points[1].first / 4);
    const Choice& last = tuning.caps.back();
    const double end = std::max(2 * curve.points.back().first, in_bytes(Bytes{32 * MiB.count}));
    curve.points.emplace_back(end, in_ms(last.step));
    double tick = 1024;
    while (tick < curve.points.front().first) tick *= 2;
    const double octaves = std::log2(end / tick);
    const double step = std::pow(2.0, std::max(1.0, std::ceil(octaves / 10)));
    for (; tick <= end; tick *= step) plot.x_ticks.push_back(tick);
  }
  curve.band = curve_band(tuning, curve);
  plot.curves.push_back(std::move(curve));
  plot.levels.push_back({in_ms(tuning.lower_bound), "lower bound"});
  const double recommended = in_ms(tuning.advice.choice.step);
  plot.zones.push_back({recommended, recommended * (1 + options.noise),
                        fmt::format("within {:.2g} % of the recommended", 100 * options.noise)});
  const auto mark = [&](const Choice& choice, const std::string& what) {
    if (choice.cap.count > 0 && choice.cap != no_cap)
      plot.marks.push_back({in_bytes(round_cap(choice.cap, choice.highest_cap).bytes),
                            in_ms(choice.step),
                            fmt::format("{}, {}", what, cap_text(choice.cap, choice.highest_cap))});
  };
  const bool standard = !tuning.advice.pays && !tuning.other_rule;
  mark(tuning.standard, standard ? "default: recommended" : "default");
  if (!standard)
    mark(tuning.advice.choice, "recommended");
  else if (tuning.best_cap.cap != tuning.standard.cap)
    mark(tuning.best_cap, "best cap");
  std::string caption =
      "The first bucket of the default has a cap of its own, so that the default need not lie on "
      "the curve. Caps in the shaded zone are as good as the recommended one: real steps repeat no "
      "better.";
  if (!plot.curves.front().band.empty())
    caption +=
        " The band around the curve shows how far the uncertainty that was "
        "asked for moves the step.";
  return {plot.title, plot_picture(plot), "", caption};
}

std::string tune_verdict(const Tuning& tuning, const TuneOptions& options) {
  const Choice& best = settled(tuning, options);
  const bool own = tuning.other_rule || has_own_buckets(tuning);
  std::string text;
  if (keeps_given(tuning, options) || (!tuning.advice.pays && !has_own_buckets(tuning)))
    text = fmt::format(
        "Keep {}: the step is {}, and no cap makes it shorter by enough to be worth a setting.",
        own ? "this scenario's buckets" : "DDP's default buckets", to_string(best.step));
  else
    text =
        fmt::format("Change {}: the step goes from {} to {}, {:.1f} % less.",
                    tuning.advice.pays ? "the bucket cap to " + cap_text(best.cap, best.highest_cap)
                                       : std::string("this scenario's buckets to DDP's default"),
                    to_string(tuning.given.step), to_string(best.step),
                    100 * (1 - in_seconds(best.step) / in_seconds(tuning.given.step)));
  return text + fmt::format(" No way to make buckets has a step below {} ({:.1f} % shorter).",
                            to_string(tuning.lower_bound),
                            100 * (1 - in_seconds(tuning.lower_bound) / in_seconds(best.step)));
}

}  // namespace

ReportSection tune_section(const Scenario& scenario, const Tuning& tuning,
                           const TuneOptions& options, const TunedSteps& tuned,
                           const std::vector<std::string>& notes) {
  ReportSection section;
  section.title = scenario.name;
  const bool standard = !tuning.advice.pays && !tuning.other_rule;
  const Step& advised = standard ? tuned.standard : tuned.recommended;
  section.headline =
      headline_of(outcome_of(scenario, Result{&advised, &tuned.none.metrics}),
                  standard ? "with DDP's default buckets" : "with the recommended buckets",
                  scenario.cluster.device.memory);
  for (const std::string& before :
       {unfit_before_verdict(scenario, tuning), assumed_before_verdict(scenario, tuned.knowledge)})
    if (!before.empty()) section.verdict += before + " ";
  section.verdict += tune_verdict(tuning, options);
  if (const auto& accuracy = tuned.knowledge.accuracy) section.verdict += " " + sentence(*accuracy);
  std::vector<NamedStep> steps{{"DDP's default", &tuned.standard}};
  if (!standard) steps.push_back({"recommended", &tuned.recommended});
  section.page.add(caps_picture(scenario, tuning, options));
  TimelinePicture drawn = timeline_picture(scenario, steps);
  section.page.add(Picture{"Timeline", std::move(drawn.svg), std::move(drawn.tasks),
                           "Rank 0 of one step. A bucket's bar shows how it fills, waits, and is "
                           "reduced."});
  section.page.add(tune_page(scenario, tuning, options, tuned.knowledge));
  if (tuned.fit) section.page.add(Paragraph{describe_calibration(*tuned.fit)});
  section.add_notes(notes);
  if (auto picture = why_picture(scenario, steps)) {
    section.page.add(std::move(*picture));
    section.folded.emplace_back(
        "What exposes each bucket in figures",
        exposed_page(scenario, steps, [&](const Step&) { return &tuned.none.metrics; }));
  }
  return section;
}

}  // namespace ddpsim
