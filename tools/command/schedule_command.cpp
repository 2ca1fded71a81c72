#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/ddp/iteration.hpp"
#include "model/ddp/schedule_builder.hpp"
#include "scenarios/reader/scenario_reader.hpp"
#include "sim/predict/consecutive.hpp"
#include "sim/predict/predict.hpp"
#include "tools/command/command.hpp"
#include "tools/command/measured_rows.hpp"
#include "tools/command/plugin_flag.hpp"
#include "tools/report/names.hpp"
#include "tools/report/output.hpp"
#include "tools/report/table.hpp"
#include "tools/report/trace.hpp"

namespace ddpsim {
namespace {

const Usage usage{
    "ddpsim schedule [flags] SCENARIO",
    "Prints the order DDP's own gradient hooks fire in, each bucket with its contents, and what "
    "the "
    "step consists of,\n"
    "for the scenario's `training.strategy`. Times are predicted: `host` is when the hook fires, "
    "`gradient` when the\n"
    "gradient is ready on the device, both from the start of the step. Hooks of your own are in "
    "`ddpsim run --hooks-log`.\n"
    "Calibrated like `ddpsim run`.",
    "ddpsim schedule scenarios/examples/first.yaml --set training.strategy=bucketed"};

std::string ms(Instant at) {
  return fmt::format("{:.3f}", in_ms(at));
}

struct HookFiring {
  std::int32_t parameter, bucket;
  Instant host, gradient;
};

/// Hooks of the last synchronised micro-batch, in firing order.
std::vector<HookFiring> firings(const Step& step) {
  std::vector<HookFiring> hooks;
  std::int16_t micro_batch = 0;
  std::size_t kernel = 0;  // the latest task that computed a gradient
  for (std::size_t i = 0; i < step.schedule.tasks.size(); ++i) {
    const Task& task = step.schedule.tasks[i];
    const TaskTimes& at = step.timeline.ranks[0][i];
    if (task.operation == Operation::backward || task.operation == Operation::accumulate)
      kernel = i;
    if (task.operation != Operation::hook) continue;
    if (task.micro_batch != micro_batch) hooks.clear();
    micro_batch = task.micro_batch;
    hooks.push_back({task.parameter, task.bucket, at.issued, step.timeline.ranks[0][kernel].end});
  }
  return hooks;
}

std::string shape_text(const Parameter& parameter) {
  std::string text;
  for (const std::int64_t extent : parameter.shape) {
    if (!text.empty()) text += 'x';
    text += std::to_string(extent);
  }
  return text;
}

std::string text_of(const Scenario& scenario, const Step& step, bool tasks) {
  const auto& parameters = scenario.workload.parameters;
  const auto parameter = [&](std::int32_t index) -> const Parameter& {
    return parameters[static_cast<std::size_t>(index)];
  };
  std::string text = fmt::format("{}: {}\n", scenario.name, strategy_label(step.training));

  const std::vector<HookFiring> hooks = firings(step);
  if (!hooks.empty()) {
    Table table({"hook", "parameter", "shape", "size", "bucket", "host ms", "gradient ms"});
    for (std::size_t i = 0; i < hooks.size(); ++i) {
      const Parameter& which = parameter(hooks[i].parameter);
      table.add({fmt::format("{}", i), which.name, shape_text(which), to_string(which.size()),
                 fmt::format("{}", hooks[i].bucket), ms(hooks[i].host), ms(hooks[i].gradient)});
    }
    text += "\nhooks, in firing order\n" + table.text();
  }
  if (!step.schedule.buckets.empty()) {
    Table table({"bucket", "bytes", "size", "tensors", "ready ms", "start ms", "end ms",
                 "exposed ms", "first .. last"},
                Table::Last::text);
    for (std::size_t b = 0; b < step.schedule.buckets.size(); ++b) {
      const Bucket& bucket = step.schedule.buckets[b];
      const BucketTimes& at = step.metrics.buckets[b];
      table.add({fmt::format("{}", b), fmt::format("{}", bucket.size.count), to_string(bucket.size),
                 fmt::format("{}", bucket.parameters.size()), ms(at.ready), ms(at.start),
                 ms(at.end), fmt::format("{:.3f}", in_ms(at.exposed)),
                 parameter(bucket.parameters.front()).name + " .. " +
                     parameter(bucket.parameters.back()).name});
    }
    text += "\nbuckets, in launch order\n" + table.text();
  }
  std::map<Operation, std::int64_t> counts;
  for (const Task& task : step.schedule.tasks) ++counts[task.operation];
  text += fmt::format("\n{} tasks:", step.schedule.tasks.size());
  for (const auto& [operation, count] : counts)
    text += fmt::format(" {} {},", count, name_of(operation));
  text.back() = '\n';
  if (tasks) {
    Table table({"task", "what", "stream", "issued ms", "start ms", "end ms"});
    for (std::size_t i = 0; i < step.schedule.tasks.size(); ++i) {
      const Task& task = step.schedule.tasks[i];
      const TaskTimes& at = step.timeline.ranks[0][i];
      table.add({fmt::format("{}", i), task_label(scenario, step.schedule, task),
                 std::string(name_of(task.stream)), ms(at.issued), ms(at.start), ms(at.end)});
    }
    text += fmt::format("\n{}", table.text());
  }
  return text;
}

/// Every collective of the step, in the order of the schedule: that in which they are issued, but for those a
/// comm hook issues once an earlier one of the same bucket has ended.
nlohmann::ordered_json collectives_of(const Scenario& scenario, const Schedule& schedule) {
  auto collectives = nlohmann::ordered_json::array();
  for (const Task& task : schedule.tasks) {
    if (!is_collective(task.operation)) continue;
    nlohmann::ordered_json& entry = collectives.emplace_back();
    entry["operation"] = name_of(task.operation);
    entry["bytes"] = task.bytes.count;
    if (task.bucket != nobody) entry["bucket"] = task.bucket;
    if (task.owner != nobody) entry["from_rank"] = task.owner;
    if (task.micro_batch > 0) entry["micro_batch"] = task.micro_batch;
    entry["what"] = task_label(scenario, schedule, task);
  }
  return collectives;
}

nlohmann::ordered_json json_of(const Scenario& scenario, const Step& step) {
  nlohmann::ordered_json json;
  const auto name = [&](std::int32_t index) {
    return scenario.workload.parameters[static_cast<std::size_t>(index)].name;
  };
  json["format"] = "ddpsim.schedule/1";
  json["scenario"] = scenario.name;
  json["strategy"] = name_of(step.training.strategy);
  json["hooks"] = nlohmann::ordered_json::array();
  for (const HookFiring& hook : firings(step))
    json["hooks"].push_back({{"parameter", name(hook.parameter)},
                             {"bucket", hook.bucket},
                             {"host_ms", in_ms(hook.host)},
                             {"gradient_ms", in_ms(hook.gradient)}});
  json["buckets"] = nlohmann::ordered_json::array();
  for (const Bucket& bucket : step.schedule.buckets) {
    nlohmann::ordered_json entry;
    entry["bytes"] = bucket.size.count;
    entry["parameters"] = nlohmann::ordered_json::array();
    for (const std::int32_t index : bucket.parameters) entry["parameters"].push_back(name(index));
    json["buckets"].push_back(entry);
  }
  json["collectives"] = collectives_of(scenario, step.schedule);
  json["tasks"] = step.schedule.tasks.size();
  return json;
}

}  // namespace

int schedule_command(const std::vector<std::string>& arguments) {
  CommonOptions options;
  boost::program_options::options_description own;
  bool tasks = false;
  int count = 0;
  own.add_options()("tasks", boost::program_options::bool_switch(&tasks),
                    "print every task as well")(
      "steps", boost::program_options::value(&count)->value_name("N"),
      "of N consecutive steps from the first on, each that differs from those before it");
  PluginFlag plugin;
  plugin.add_to(own);
  if (!parse(arguments, usage, Flag::set | Flag::json | Flag::trace | Flag::quiet | Flag::laws_only,
             own, options))
    return exit_done;
  if (options.files.size() != 1)
    throw InputError("schedule needs one scenario: ddpsim schedule scenarios/examples/first.yaml");
  const Plugins plugins = plugin.open();
  const Scenario scenario = read_scenario(options.files[0], options.set);
  if (!plugin.files.empty()) plugins.check(scenario.training);
  const CalibratedCosts priced = price_calibrated(scenario, options.laws_only);
  const bool steps_asked = options.values.count("steps") > 0;
  const ConsecutiveSteps steps =
      steps_asked ? consecutive_steps(priced.costs, scenario.training, count)
                  : ConsecutiveSteps{{predict(priced.costs, scenario.training)}, {0}, {1}, {}};
  const Step& step = steps.kinds.front();
  Outputs outputs;
  std::string text;
  nlohmann::ordered_json json = json_of(scenario, step);
  if (steps_asked) json["steps"] = nlohmann::ordered_json::array();
  for (std::size_t kind = 0; kind < steps.kinds.size(); ++kind) {
    const Step& each = steps.kinds[kind];
    if (steps_asked) {
      text += fmt::format("{}{} of {} steps: {}\n", kind > 0 ? "\n" : "", steps.counts[kind], count,
                          phase_label(each.training));
      json["steps"].push_back(json_of(scenario, each));
      json["steps"].back()["phase"] = phase_label(each.training);
      json["steps"].back()["count"] = steps.counts[kind];
    }
    text += text_of(scenario, each, tasks);
  }
  if (priced.fit) text += fmt::format("\n{}", describe_calibration(*priced.fit));
  if (!options.quiet && options.json != "-" && options.trace != "-") outputs.add("-", text);
  outputs.add(options.json, json_text(json));
  if (!options.trace.empty())
    outputs.add(options.trace, chrome_trace(scenario, {{strategy_label(step.training), &step}}));
  outputs.commit();
  return exit_done;
}

}  // namespace ddpsim
