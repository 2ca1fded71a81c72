#include "tools/report/step_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/ddp/iteration.hpp"
#include "model/timeline/metrics.hpp"
#include "sim/predict/predict.hpp"
#include "tools/report/table.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_rows = 20;

std::string ms(Duration time) {
  return fmt::format("{:.2f}", in_ms(time));
}
std::string ns_as_ms(std::int64_t ns) {
  return fmt::format("{:.3f}", static_cast<double>(ns) * 1e-6);
}

}  // namespace

std::vector<ConsecutiveSteps> steps_of(const Comparison& run, int count) {
  std::vector<ConsecutiveSteps> steps;
  for (const Step& each : run.compared)
    steps.push_back(consecutive_steps(run.priced.costs, each.training, count));
  return steps;
}

std::string steps_text(const Comparison& run, const std::vector<ConsecutiveSteps>& steps) {
  std::string text = fmt::format("{} consecutive steps\n", steps.front().sequence.size());
  Table table(
      {"strategy", "steps", "phase", "buckets", "step ms", "comm ms", "collectives", "sum ms"});
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const ConsecutiveSteps& each = steps[s];
    const std::string name = strategy_label(run.compared[s].training);
    std::size_t rows = 0, begin = 0;
    while (begin < each.sequence.size()) {
      std::size_t end = begin + 1;
      while (end < each.sequence.size() && each.sequence[end] == each.sequence[begin]) ++end;
      if (++rows > most_rows) {
        table.add({name, fmt::format("{}-{}", begin + 1, each.sequence.size()), "as before", "", "",
                   "", "", ""});
        break;
      }
      const Step& kind = each.kinds[static_cast<std::size_t>(each.sequence[begin])];
      table.add(
          {name, end == begin + 1 ? fmt::format("{}", end) : fmt::format("{}-{}", begin + 1, end),
           phase_label(kind.training), fmt::format("{}", kind.schedule.buckets.size()),
           ms(kind.metrics.step), ms(kind.metrics.communication),
           fmt::format("{}", kind.metrics.collectives),
           fmt::format("{:.2f}", static_cast<double>(end - begin) * in_ms(kind.metrics.step))});
      begin = end;
    }
    table.add({name, "all", "", "",
               fmt::format("{:.2f}",
                           1e3 * each.total_seconds() / static_cast<double>(each.sequence.size())),
               "", "", fmt::format("{:.2f}", 1e3 * each.total_seconds())});
  }
  return text + table.text();
}

nlohmann::ordered_json steps_json(const Comparison& run, const ConsecutiveSteps& steps,
                                  const Result& result) {
  nlohmann::ordered_json json;
  json["count"] = steps.sequence.size();
  json["total_ms"] = 1e3 * steps.total_seconds();
  json["kinds"] = nlohmann::ordered_json::array();
  for (std::size_t kind = 0; kind < steps.kinds.size(); ++kind) {
    nlohmann::ordered_json entry;
    entry["phase"] = phase_label(steps.kinds[kind].training);
    entry["steps"] = steps.counts[kind];
    entry.update(result_json(run.scenario, {&steps.kinds[kind], result.none, result.naive}));
    json["kinds"].push_back(std::move(entry));
  }
  json["sequence"] = steps.sequence;
  return json;
}

DdpAverages averages_of(const Step& step) {
  DdpAverages averages;
  if (const auto sample = ddp_statistics(step.schedule, step.timeline)) averages.add(*sample);
  return averages;
}

std::string hooks_text(const Comparison& run) {
  const auto bucketed = [](const Step& step) {
    return step.training.strategy == Strategy::bucketed;
  };
  std::string text;
  for (const Step& step : run.compared) {
    const std::string name = strategy_label(step.training);
    const StepMetrics& metrics = step.metrics;
    if (!step.training.hooks.empty()) {
      Training bare = step.training;
      bare.hooks.clear();
      const Duration without = predict(run.priced.costs, bare).metrics.step;
      text += fmt::format("{}: hooks of your own: step {} ms against {} ms without ({:+.2f} ms)\n",
                          name, ms(metrics.step), ms(without), in_ms(metrics.step - without));
    }
    if (step.training.comm_hook && bucketed(step))
      text += fmt::format(
          "{}: the comm hook hands {} to {} collectives; its own kernels take {} ms, and {} of "
          "memory "
          "besides the buckets\n",
          name, to_string(metrics.wire), metrics.collectives, ms(metrics.comm_hook),
          to_string(step.schedule.comm_hook_memory));
  }
  if (run.scenario.training.comm_hook &&
      !std::all_of(run.compared.begin(), run.compared.end(), bucketed))
    text += "comm_hook acts under bucketed only\n";
  return text;
}

std::string statistics_text(const Comparison& run, const std::vector<ConsecutiveSteps>& steps) {
  std::string text =
      "what DistributedDataParallel's logger would say (ms), of one iteration (the last "
      "micro-batch), "
      "beside ours; comm ms is of the whole step\n";
  bool logs = false;
  Table table({"strategy", "avg_forward_compute_time", "avg_backward_compute_time",
               "avg_backward_comm_time", "avg_backward_compute_comm_overlap_time", "comm ms",
               "busy overlap ms"});
  for (std::size_t s = 0; s < run.compared.size(); ++s) {
    const Step& step = run.compared[s];
    const DdpAverages logged = steps.empty() ? averages_of(step) : steps[s].logged;
    if (logged.samples_taken() == 0) continue;
    logs = true;
    const Duration hidden =
        scaled(step.metrics.communication, overlap_ratio(step.metrics, run.none.metrics));
    table.add({strategy_label(step.training), ns_as_ms(logged.avg_forward_compute_time()),
               ns_as_ms(logged.avg_backward_compute_time()),
               ns_as_ms(logged.avg_backward_comm_time()),
               ns_as_ms(logged.avg_backward_compute_comm_overlap_time()),
               ms(step.metrics.communication), ms(hidden)});
  }
  if (!logs)
    return "DistributedDataParallel's logger runs for bucketed only, which is not compared here\n";
  return text + table.text();
}

nlohmann::ordered_json statistics_json(const DdpAverages& logged) {
  if (logged.samples_taken() == 0) return nullptr;
  nlohmann::ordered_json json;
  json["avg_forward_compute_time_ns"] = logged.avg_forward_compute_time();
  json["avg_backward_compute_time_ns"] = logged.avg_backward_compute_time();
  json["avg_backward_comm_time_ns"] = logged.avg_backward_comm_time();
  json["avg_backward_compute_comm_overlap_time_ns"] =
      logged.avg_backward_compute_comm_overlap_time();
  json["samples"] = logged.samples_taken();
  return json;
}

}  // namespace ddpsim
