#include "tools/report/validation_report.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "backend/job/steal.hpp"
#include "tools/report/chart.hpp"
#include "tools/report/names.hpp"
#include "tools/report/results.hpp"
#include "tools/report/table.hpp"

namespace ddpsim {
namespace {

using Json = nlohmann::ordered_json;

std::string ms(Duration time) {
  return fmt::format("{:.2f}", in_ms(time));
}
std::string ms(Instant at) {
  return ms(at.time_since_epoch());
}
std::string signed_ms(Duration time) {
  return fmt::format("{:+.2f}", in_ms(time));
}
std::string percent(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

const ValidatedStep& none_of(const Validation& validation) {
  return validation.steps.front();
}

const ValidatedStep& naive_of(const Validation& validation) {
  for (const ValidatedStep& step : validation.steps)
    if (step.measured.training.strategy == Strategy::naive) return step;
  return none_of(validation);
}

double overlap(const Step& step, const Step& none) {
  return overlap_ratio(step.metrics, none.metrics);
}

/// Does a step communicate at all?
bool communicates(const ValidatedStep& step) {
  return step.measured.metrics.collectives > 0;
}

Json spread_json(const Spread& spread) {
  return {{"step_low_ms", in_ms(spread.low)},
          {"step_high_ms", in_ms(spread.high)},
          {"repeats", spread.repeats},
          {"outliers", spread.outliers}};
}

Json parts_json(const Breakdown& parts) {
  return {{"compute_ms", in_ms(parts.compute)},
          {"communication_ms", in_ms(parts.communication)},
          {"waiting_ms", in_ms(parts.waiting)},
          {"launch_ms", in_ms(parts.launch)}};
}

Json error_json(const ValidatedStep& step, const ValidatedStep& none) {
  const StepMetrics &predicted = step.predicted.metrics, &measured = step.measured.metrics;
  Json json;
  json["step_ms"] = relative_error(predicted.step, measured.step);
  json["forward_ms"] = relative_error(predicted.forward, measured.forward);
  json["backward_ms"] = relative_error(predicted.backward, measured.backward);
  json["optimizer_ms"] = relative_error(predicted.optimizer, measured.optimizer);
  json["communication_ms"] = relative_error(predicted.communication, measured.communication);
  json["exposed_ms"] = relative_error(exposed(predicted, none.predicted.metrics),
                                      exposed(measured, none.measured.metrics));
  json["overlap_ratio"] =
      overlap(step.predicted, none.predicted) - overlap(step.measured, none.measured);
  json["buckets"] = Json::array();
  for (std::size_t b = 0; b < measured.buckets.size(); ++b) {
    const BucketTimes &p = predicted.buckets[b], &m = measured.buckets[b];
    const auto error = [](Instant x, Instant y) {
      return relative_error(x.time_since_epoch(), y.time_since_epoch());
    };
    json["buckets"].push_back({{"index", b},
                               {"ready_ms", error(p.ready, m.ready)},
                               {"start_ms", error(p.start, m.start)},
                               {"end_ms", error(p.end, m.end)}});
  }
  return json;
}

std::string steps_table(const Validation& validation) {
  Table table({"strategy", "predicted ms", "measured ms", "error", "p10 - p90 ms", "forward ms",
               "backward ms", "optimizer ms"});
  for (const ValidatedStep& step : validation.steps) {
    const StepMetrics &p = step.predicted.metrics, &m = step.measured.metrics;
    const auto both = [](Duration a, Duration b) { return ms(a) + " | " + ms(b); };
    table.add({label_of(step), ms(p.step), ms(m.step), percent(relative_error(p.step, m.step)),
               fmt::format("{} - {}{}", ms(step.spread.low), ms(step.spread.high),
                           step.unsteady() ? " !" : ""),
               both(p.forward, m.forward), both(p.backward, m.backward),
               both(p.optimizer, m.optimizer)});
  }
  return table.text();
}

std::string overlap_table(const Validation& validation) {
  Table table({"strategy", "comm ms", "error", "exposed ms", "overlap", "compute", "communication",
               "waiting", "launch"});
  const ValidatedStep& none = none_of(validation);
  for (const ValidatedStep& step : validation.steps) {
    const StepMetrics &p = step.predicted.metrics, &m = step.measured.metrics;
    const Breakdown &a = step.predicted_parts, &b = step.measured_parts;
    const bool sends = communicates(step);
    table.add({label_of(step), sends ? ms(p.communication) + " | " + ms(m.communication) : "-",
               sends ? percent(relative_error(p.communication, m.communication)) : "-",
               sends ? ms(exposed(p, none.predicted.metrics)) + " | " +
                           ms(exposed(m, none.measured.metrics))
                     : "-",
               sends
                   ? fmt::format("{:.0f} | {:.0f} %", 100 * overlap(step.predicted, none.predicted),
                                 100 * overlap(step.measured, none.measured))
                   : "-",
               signed_ms(a.compute - b.compute), signed_ms(a.communication - b.communication),
               signed_ms(a.waiting - b.waiting), signed_ms(a.launch - b.launch)});
  }
  return table.text();
}

std::string bucket_table(const ValidatedStep& step) {
  Table table({"bucket", "size", "ready ms", "start ms", "end ms", "end error"});
  for (std::size_t b = 0; b < step.measured.schedule.buckets.size(); ++b) {
    const BucketTimes &p = step.predicted.metrics.buckets[b], &m = step.measured.metrics.buckets[b];
    const auto both = [](Instant x, Instant y) { return ms(x) + " | " + ms(y); };
    table.add({fmt::format("{}", b), to_string(step.measured.schedule.buckets[b].size),
               both(p.ready, m.ready), both(p.start, m.start), both(p.end, m.end),
               percent(relative_error(p.end.time_since_epoch(), m.end.time_since_epoch()))});
  }
  return fmt::format("buckets of {}: predicted | measured\n{}", label_of(step), table.text());
}

/// What comm hooks do to gradients.
std::string exceptions_text(const Validation& validation) {
  std::string text;
  for (const ValidatedStep& step : validation.steps) {
    const std::string label = label_of(step);
    if (step.gradients.kept == Kept::same_everywhere)
      text += fmt::format("but {} loses some: the same on all ranks, not compared with the mean\n",
                          label);
    if (step.gradients.kept == Kept::nothing)
      text += fmt::format("but {} need not average: not compared\n", label);
  }
  return text;
}

std::string overflows_text(const Validation& validation) {
  std::string text;
  for (const ValidatedStep& step : validation.steps)
    if (step.overflows > 0)
      text += fmt::format(
          "OVERFLOW: {} gradients became infinite in 16 bit under {}: scale them down, or take "
          "bf16_compress\n",
          step.overflows, label_of(step));
  return text;
}

std::string gradients_text(const Validation& validation) {
  double worst = 0;
  for (const ValidatedStep& step : validation.steps) {
    worst = std::max(worst, step.gradients.worst);
    if (step.gradients.good()) continue;
    const std::string label = label_of(step);
    return step.gradients.identical || step.gradients.kept == Kept::nothing
               ? fmt::format(
                     "gradients WRONG under {}: {} is {:.3g} times rounding from the mean\n", label,
                     step.gradients.first_wrong, step.gradients.worst)
               : fmt::format("gradients WRONG under {}: they differ between ranks\n", label);
  }
  const std::string text = fmt::format(
      "gradients: identical on all ranks to the bit under every strategy, and the mean of the "
      "local "
      "ones ({:.2f} of what rounding may cost)\n",
      worst);
  return text + exceptions_text(validation);
}

}  // namespace

std::string label_of(const ValidatedStep& step) {
  Training training = step.measured.training;
  for (const Setting& setting : step.settings)
    if (setting.first == "training.comm_hook") training.comm_hook = {};  // in the user's words
  const std::string label = strategy_label(training);
  std::vector<Setting> untold;
  for (const Setting& setting : step.settings)
    if (setting.first != "training.bucket_cap" || !label.ends_with(to_string(training.bucket_cap)))
      untold.push_back(setting);
  return untold.empty() ? label : fmt::format("{}, {}", label, short_label(untold));
}

double relative_error(Duration predicted, Duration measured) {
  if (measured == Duration::zero()) return predicted == Duration::zero() ? 0 : 1;
  return in_seconds(predicted - measured) / std::abs(in_seconds(measured));
}

double median_step_error(const Validation& validation) {
  std::vector<double> errors;
  for (const ValidatedStep& step : validation.steps)
    errors.push_back(
        std::abs(relative_error(step.predicted.metrics.step, step.measured.metrics.step)));
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  return *middle;
}

nlohmann::ordered_json validation_json(const Validation& validation) {
  Json json;
  json["format"] = "ddpsim.validate/1";
  json["scenario"] = validation.scenario.name;
  json["mode"] = validation.mode;
  json["ranks"] = validation.scenario.cluster.ranks();
  json["busy_kernels"] = validation.busy_kernels;
  json["stolen_share"] = validation.stolen;
  json["calibrated"] = {{"machine", validation.calibration.machine},
                        {"cpu", validation.calibration.cpu},
                        {"link", validation.calibration.link},
                        {"versions", validation.calibration.versions},
                        {"date", validation.calibration.date}};
  json["results"] = Json::array();
  const ValidatedStep &none = none_of(validation), &naive = naive_of(validation);
  for (const ValidatedStep& step : validation.steps) {
    Json result;
    Json predicted = result_json(
        validation.scenario, {&step.predicted, &none.predicted.metrics, &naive.predicted.metrics});
    Json measured = result_json(validation.scenario,
                                {&step.measured, &none.measured.metrics, &naive.measured.metrics});
    result["strategy"] = predicted["strategy"];
    result["bucket_cap_bytes"] = predicted["bucket_cap_bytes"];
    if (!step.settings.empty()) {
      result["set"] = Json::object();
      for (const auto& [key, value] : step.settings) result["set"][key] = value;
    }
    predicted["parts"] = parts_json(step.predicted_parts);
    measured["parts"] = parts_json(step.measured_parts);
    measured["spread"] = spread_json(step.spread);
    result["predicted"] = std::move(predicted);
    result["measured"] = std::move(measured);
    result["error"] = error_json(step, none);
    result["gradients"] = {{"identical", step.gradients.identical},
                           {"worst_over_tolerance", step.gradients.worst},
                           {"compared_with_mean", step.gradients.kept == Kept::mean},
                           {"overflows", step.overflows}};
    result["unsteady"] = step.unsteady();
    json["results"].push_back(std::move(result));
  }
  json["median_step_error"] = median_step_error(validation);
  return json;
}

std::string doubt_about(double stolen) {
  if (stolen <= most_stolen) return "";
  return fmt::format(
      "the host of this virtual machine took {:.0f} % of its processors' time meanwhile: validate "
      "again when it takes less\n",
      100 * stolen);
}

std::string validation_text(const Validation& validation) {
  std::string text =
      fmt::format("{}: {}\ncalibrated {} on {}\n", validation.scenario.name, validation.mode,
                  validation.calibration.date, validation.calibration.cpu);
  if (validation.busy_kernels)
    text +=
        "this workload's kernels have no shapes: busy work of the profile's times stands for "
        "them\n";
  text += doubt_about(validation.stolen);
  text += "\n";
  text += steps_table(validation);
  text +=
      "\npairs are predicted | measured; measured: medians over steps and ranks; ! repeats differ "
      "by "
      "over 10 %\n\n";
  text += overlap_table(validation);
  text +=
      "\ncompute to launch: where predicted minus measured step of rank 0 comes from, in ms\n\n";
  const ValidatedStep* shown = nullptr;
  for (const ValidatedStep& step : validation.steps) {
    if (step.measured.training.strategy != Strategy::bucketed) continue;
    text += bucket_table(step);
    text += "\n";
    shown = &step;
  }
  if (shown != nullptr) {
    text += timeline_chart({{"predicted", &shown->predicted}, {"measured", &shown->measured}});
    text += "\n";
  }
  return text + gradients_text(validation) + overflows_text(validation);
}

}  // namespace ddpsim
