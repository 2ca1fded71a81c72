#include "tools/report/results.hpp"

#include <fmt/format.h>

#include "tools/report/chart.hpp"
#include "tools/report/csv.hpp"
#include "tools/report/names.hpp"
#include "tools/report/table.hpp"

namespace ddpsim {
namespace {

std::string ms(Duration time) {
  return fmt::format("{:.2f}", in_ms(time));
}

nlohmann::ordered_json bucket_json(const Scenario& scenario, const Bucket& bucket,
                                   const BucketTimes& times, std::size_t index) {
  nlohmann::ordered_json json;
  json["index"] = index;
  json["bytes"] = bucket.size.count;
  json["parameters"] = nlohmann::ordered_json::array();
  for (const std::int32_t parameter : bucket.parameters)
    json["parameters"].push_back(
        scenario.workload.parameters[static_cast<std::size_t>(parameter)].name);
  json["ready_ms"] = in_ms(times.ready);
  json["start_ms"] = in_ms(times.start);
  json["end_ms"] = in_ms(times.end);
  json["exposed_ms"] = in_ms(times.exposed);
  return json;
}

/// Is one cap what makes its buckets?
bool has_cap(const Training& training) {
  return training.strategy == Strategy::bucketed && training.buckets.empty() &&
         training.bucket_caps.empty() && training.parameter_groups == 0;
}

/// The names of the CS336 result tables.
std::string implementation(Strategy strategy) {
  return strategy == Strategy::overlap ? "overlap_individual" : std::string(name_of(strategy));
}

}  // namespace

nlohmann::ordered_json result_json(const Scenario& scenario, const Result& result) {
  const Training& training = result.step->training;
  const StepMetrics& metrics = result.step->metrics;
  nlohmann::ordered_json json;
  json["strategy"] = name_of(training.strategy);
  if (has_cap(training))
    json["bucket_cap_bytes"] = training.bucket_cap.count;
  else
    json["bucket_cap_bytes"] = nullptr;
  json["step_ms"] = in_ms(metrics.step);
  json["forward_ms"] = in_ms(metrics.forward);
  json["backward_ms"] = in_ms(metrics.backward);
  json["optimizer_ms"] = in_ms(metrics.optimizer);
  json["communication_ms"] = in_ms(metrics.communication);
  json["exposed_ms"] = in_ms(exposed(metrics, *result.none));
  json["overlap_ratio"] = overlap_ratio(metrics, *result.none);
  json["collectives"] = metrics.collectives;
  json["wire_bytes"] = metrics.wire.count;
  json["speedup_vs_naive"] = result.speedup();
  json["bound"] = name_of(metrics.bound);
  if (const Schedule& schedule = result.step->schedule; schedule.comm_hook) {
    json["comm_hook"] = label(schedule.comm_hook);
    json["comm_hook_ms"] = in_ms(metrics.comm_hook);
    json["comm_hook_memory_bytes"] = schedule.comm_hook_memory.count;
  }
  json["buckets"] = nlohmann::ordered_json::array();
  const Schedule& schedule = result.step->schedule;
  for (std::size_t b = 0; b < schedule.buckets.size(); ++b)
    json["buckets"].push_back(bucket_json(scenario, schedule.buckets[b], metrics.buckets[b], b));
  return json;
}

nlohmann::ordered_json run_json(const Scenario& scenario, const std::vector<Result>& results) {
  nlohmann::ordered_json json;
  json["format"] = "ddpsim.run/1";
  json["scenario"] = scenario.name;
  json["ranks"] = scenario.cluster.ranks();
  json["results"] = nlohmann::ordered_json::array();
  for (const Result& result : results) json["results"].push_back(result_json(scenario, result));
  return json;
}

std::string run_csv_header() {
  return "implementation,model_size,d_model,num_layers,world_size,avg_step_time_ms,speedup_vs_"
         "naive,"
         "scenario,bucket_cap_bytes,forward_ms,backward_ms,optimizer_ms,communication_ms,exposed_"
         "ms,"
         "overlap_ratio,collectives,wire_bytes,bound\n";
}

std::string run_csv(const Scenario& scenario, const std::vector<Result>& results) {
  const auto count = [](int value) { return value > 0 ? fmt::format("{}", value) : std::string(); };
  std::string text;
  for (const Result& result : results) {
    const Training& training = result.step->training;
    const StepMetrics& metrics = result.step->metrics;
    text += fmt::format(
        "{},{},{},{},{},{:.4f},{:.4f},{},{},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{},{},{}\n",
        implementation(training.strategy), csv_field(scenario.workload.name),
        count(scenario.d_model), count(scenario.num_layers), scenario.cluster.ranks(),
        in_ms(metrics.step), result.speedup(), csv_field(scenario.name),
        has_cap(training) ? fmt::format("{}", training.bucket_cap.count) : "",
        in_ms(metrics.forward), in_ms(metrics.backward), in_ms(metrics.optimizer),
        in_ms(metrics.communication), in_ms(exposed(metrics, *result.none)),
        overlap_ratio(metrics, *result.none), metrics.collectives, metrics.wire.count,
        name_of(metrics.bound));
  }
  return text;
}

std::string run_table(const Scenario& scenario, const StepCosts& costs,
                      const std::vector<Result>& results) {
  const Cluster& cluster = scenario.cluster;
  std::string text = fmt::format(
      "{}\n{}: {} tensors, {:.1f} M parameters, {} of gradients; {} x {}, all-reduce law: {}\n\n",
      scenario.name, scenario.workload.name, scenario.workload.parameters.size(),
      static_cast<double>(scenario.workload.elements()) * 1e-6,
      to_string(scenario.workload.gradient_size()), cluster.ranks(), cluster.device.name,
      costs.collective.name());
  Table table({"strategy", "step ms", "forward ms", "backward ms", "optimizer ms", "comm ms",
               "exposed ms", "overlap", "speedup", "collectives", "bound"});
  for (const Result& result : results) {
    const StepMetrics& metrics = result.step->metrics;
    table.add({strategy_label(result.step->training), ms(metrics.step), ms(metrics.forward),
               ms(metrics.backward), ms(metrics.optimizer), ms(metrics.communication),
               ms(exposed(metrics, *result.none)),
               metrics.collectives > 0
                   ? fmt::format("{:.0f} %", 100 * overlap_ratio(metrics, *result.none))
                   : "-",
               fmt::format("{:.3f}x", result.speedup()), fmt::format("{}", metrics.collectives),
               std::string(name_of(metrics.bound))});
  }
  text += table.text();
  text += fmt::format(
      "\nwithout communication: {} ms; speedup is over naive; exposed: step minus that\n\n",
      ms(results.front().none->step));
  std::vector<NamedStep> steps;
  for (const Result& result : results)
    steps.push_back({strategy_label(result.step->training), result.step});
  return text + timeline_chart(steps);
}

}  // namespace ddpsim
