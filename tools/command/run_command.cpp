#include <cstdio>

#include <fmt/format.h>

#include "scenarios/reader/scenario_reader.hpp"
#include "tools/command/command.hpp"
#include "tools/command/plugin_flag.hpp"
#include "tools/command/varied_run.hpp"
#include "tools/report/comparison.hpp"
#include "tools/report/hooks_log.hpp"
#include "tools/report/names.hpp"
#include "tools/report/output.hpp"
#include "tools/report/run_ahead_report.hpp"
#include "tools/report/step_report.hpp"
#include "tools/report/trace.hpp"
#include "tools/report/why_report.hpp"

namespace ddpsim {
namespace {

const Usage usage{
    "ddpsim run [flags] SCENARIO...",
    "Predicts a training step under every strategy in the scenario's `compare` list and prints "
    "what each costs.\n"
    "Columns: comm is the sum of all collectives' durations; exposed is how much longer the step "
    "is than without\n"
    "communication (waiting, interference and copies included); overlap is max(0, 1 - exposed / "
    "comm); bound is what\n"
    "most of the critical path is: compute, the link's bandwidth, its latency, or host launches. A "
    "scenario with\n"
    "measured rows is calibrated on those its `calibrate_on` names first, as `ddpsim score` does.\n"
    "--ddp-statistics: PyTorch's own averages differ from these. Its backward compute begins where "
    "forward ends and\n"
    "holds the host's gaps and the copies into buckets; its comm lasts from the first launch to "
    "the "
    "last copy back,\n"
    "with all pauses between collectives; its overlap is the window from the first launch to the "
    "end of backward,\n"
    "whether or not the link was busy in it. Busy overlap counts only what ran beside kernels. And "
    "DDP logs one\n"
    "iteration, the last micro-batch; our comm is of the whole step.\n"
    "--run-ahead: with --steps each step begins when the one before has ended, as if the loop "
    "synchronised. A loop that\n"
    "does not (no .item(), no printing of the loss) launches the next step while the GPU still "
    "works: "
    "its period is from\n"
    "the end of the step before to its own end. DDP's logger makes the host wait at the forward "
    "after "
    "iterations 1 to 10,\n"
    "then 100, 200, ...: ddpsim run --steps 200 --run-ahead scenarios/seeds/hooks-demo-4.yaml",
    "ddpsim run scenarios/examples/first.yaml --trace step.json"};

/// Every combination of --vary, side by side.
int compare_varied(const CommonOptions& options, const std::vector<std::string>& vary) {
  if (options.files.size() > 1) throw InputError("--vary takes one scenario at a time");
  if (!options.trace.empty())
    throw InputError("--trace takes no --vary: run the combination you want to look at with --set");
  std::vector<Axis> axes;
  for (const std::string& text : vary) axes.push_back(parse_axis(text));
  const std::vector<VariedRun> runs =
      run_varied(options.files[0], options.set, Grid(std::move(axes)), options.laws_only);
  Outputs outputs;
  if (!options.quiet && options.json != "-" && options.csv != "-")
    outputs.add("-", varied_table(runs));
  outputs.add(options.json, json_text(varied_json(runs)));
  outputs.add(options.csv, varied_csv(runs));
  outputs.commit();
  return exit_done;
}

}  // namespace

int run_command(const std::vector<std::string>& arguments) {
  CommonOptions options;
  bool why = false;
  std::string log;
  PluginFlag plugin;
  bool ddp_statistics = false, ahead = false;
  int count = 0;
  std::string phase;
  std::vector<std::string> vary;
  boost::program_options::options_description own;
  own.add_options()("why", boost::program_options::bool_switch(&why),
                    "for each exposed bucket what held it up, and what would remove it")(
      "steps", boost::program_options::value(&count)->value_name("N"),
      "N consecutive steps from the first on: initial buckets, rebuild, steady state")(
      "run-ahead", boost::program_options::bool_switch(&ahead),
      "with --steps: also as one run, in which the host launches steps ahead of the GPU")(
      "phase", boost::program_options::value(&phase)->value_name("steady|first"),
      "DDP's first iteration, or the steady state: the same as --set training.phase=first")(
      "ddp-statistics", boost::program_options::bool_switch(&ddp_statistics),
      "what PyTorch's DDP logger would print, beside ours")(
      "vary", boost::program_options::value(&vary)->value_name("KEY=VALUES"),
      "the values a key takes, side by side in one table (may be repeated): "
      "training.comm_hook=none,fp16_compress")(
      "hooks-log", boost::program_options::value(&log)->value_name("FILE"),
      "write every hook in the order they fire, with host and device time (CSV; JSON for *.json)");
  plugin.add_to(own);
  if (!parse(arguments, usage,
             Flag::set | Flag::json | Flag::csv | Flag::trace | Flag::quiet | Flag::laws_only, own,
             options))
    return exit_done;
  if (options.files.empty())
    throw InputError("run needs a scenario: ddpsim run scenarios/examples/first.yaml");
  if ((!options.trace.empty() || !log.empty()) && options.files.size() > 1)
    throw InputError("--trace and --hooks-log take one scenario at a time");
  check_apart(options, "--hooks-log", log);
  const Plugins plugins = plugin.open();

  if (!phase.empty()) options.set.emplace_back("training.phase", phase);
  const bool steps_asked = options.values.count("steps") > 0;
  if (steps_asked && (count < 1 || count > most_steps))
    throw InputError(
        fmt::format("--steps: expected a whole number from 1 to {}, got {}", most_steps, count));
  if (ahead && !steps_asked)
    throw InputError("--run-ahead is of consecutive steps: say how many, such as --steps 100");
  if (steps_asked && !phase.empty())
    throw InputError("--steps begins with the first: it takes no --phase");
  if (!vary.empty()) {
    if (steps_asked || ddp_statistics)
      throw InputError("--vary takes neither --steps nor --ddp-statistics");
    if (why) throw InputError("--why takes no --vary");
    if (!log.empty()) throw InputError("--hooks-log takes no --vary");
    return compare_varied(options, vary);
  }

  // Results asked for on stdout are the only thing there.
  const bool table = !options.quiet && options.json != "-" && options.csv != "-" &&
                     options.trace != "-" && log != "-";
  std::string text, csv = run_csv_header(), trace, hooks;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const std::string& file : options.files) {
    Scenario scenario = read_scenario(file, options.set);
    if (!plugin.files.empty()) plugins.check(scenario.training);
    const Comparison run(std::move(scenario), options.laws_only);
    const std::vector<Result> results = run.results();
    text += run_table(run.scenario, run.priced.costs, results);
    if (run.priced.fit) text += fmt::format("\n{}", describe_calibration(*run.priced.fit));
    if (const std::string cost = table ? hooks_text(run) : ""; !cost.empty())
      text += fmt::format("\n{}", cost);
    const std::vector<ConsecutiveSteps> steps =
        steps_asked ? steps_of(run, count) : std::vector<ConsecutiveSteps>{};
    if (steps_asked && table) text += fmt::format("\n{}", steps_text(run, steps));
    const std::vector<RunAhead> joined = ahead ? joined_runs(run, steps) : std::vector<RunAhead>{};
    if (ahead && table) text += fmt::format("\n{}", run_ahead_text(run, steps, joined));
    if (ddp_statistics && table) text += fmt::format("\n{}", statistics_text(run, steps));
    if (why && table) text += fmt::format("\n{}", why_text(run));
    text += file == options.files.back() ? "" : "\n";
    csv += run_csv(run.scenario, results);
    json.push_back(run_json(run.scenario, results));
    for (std::size_t i = 0; i < results.size() && !options.json.empty(); ++i) {
      nlohmann::ordered_json& entry = json.back()["results"][i];
      if (steps_asked) entry["steps"] = steps_json(run, steps[i], results[i]);
      if (ahead) entry["run_ahead"] = run_ahead_json(steps[i], joined[i]);
      if (ddp_statistics)
        entry["ddp_statistics"] =
            statistics_json(steps_asked ? steps[i].logged : averages_of(*results[i].step));
    }
    if (why && !options.json.empty()) {
      std::vector<nlohmann::ordered_json> reasons = why_json(run);
      for (std::size_t i = 0; i < reasons.size(); ++i)
        json.back()["results"][i]["why"] = std::move(reasons[i]);
    }
    if (!options.trace.empty()) trace = chrome_trace(run.scenario, run.named());
    if (!log.empty()) {
      std::vector<LoggedStep> logged;
      for (const Step& step : run.compared)
        logged.push_back({strategy_label(step.training), "predicted", &step});
      hooks = hooks_log(run.scenario, logged, wants_json(log));
    }
  }
  Outputs outputs;
  if (table) outputs.add("-", text);
  outputs.add(options.json, json_text(options.files.size() == 1 ? json.front() : json));
  outputs.add(options.csv, csv);
  outputs.add(options.trace, trace);
  outputs.add(log, hooks);
  outputs.commit();
  return exit_done;
}

}  // namespace ddpsim
