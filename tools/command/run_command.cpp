#include <cstdio>

#include <fmt/format.h>

#include "scenarios/reader/scenario_reader.hpp"
#include "tools/command/command.hpp"
#include "tools/command/pages.hpp"
#include "tools/command/plugin_flag.hpp"
#include "tools/command/varied_run.hpp"
#include "tools/report/comparison.hpp"
#include "tools/report/csv.hpp"
#include "tools/report/hooks_log.hpp"
#include "tools/report/json_writer.hpp"
#include "tools/report/names.hpp"
#include "tools/report/output.hpp"
#include "tools/report/run_ahead_report.hpp"
#include "tools/report/step_report.hpp"
#include "tools/report/steps_fields.hpp"
#include "tools/report/trace.hpp"
#include "tools/report/why_fields.hpp"
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
  MoreInputs more;
  for (const std::string& text : vary) {
    const Axis& axis = axes.emplace_back(parse_axis(text));
    more.values.insert(more.values.end(), axis.values.begin(), axis.values.end());
  }
  check_results(options, {}, more);
  const std::vector<VariedRun> runs =
      run_varied(options.files[0], options.set, Grid(std::move(axes)), options.laws_only);
  Pages pages(options);
  if (pages.wanted()) pages.add(varied_page(runs));
  Outputs outputs;
  pages.add_to(outputs);
  outputs.add(options.json, json_text(json_of(varied_records(runs))));
  outputs.add(options.csv, csv_of(varied_table(runs)));
  outputs.commit();
  return exit_done;
}

/// What the flags ask for besides one step of each strategy.
struct MoreOfSteps {
  std::vector<ConsecutiveSteps> steps;  ///< [strategy]; empty: not asked for
  std::vector<RunAhead> joined;         ///< likewise
  bool ddp_statistics = false, why = false;
};

/// `count`: steps, 0 of none.
MoreOfSteps more_of(const Comparison& run, int count, bool ahead, bool ddp_statistics, bool why) {
  MoreOfSteps more{{}, {}, ddp_statistics, why};
  if (count > 0) more.steps = steps_of(run, count);
  if (ahead) more.joined = joined_runs(run, more.steps);
  return more;
}

Page page_of(const Comparison& run, const MoreOfSteps& more) {
  Page page = run_page(run.scenario, run.priced.model.costs.collective.name(), run.results());
  if (run.priced.fit) page.add(Paragraph{describe_calibration(*run.priced.fit)});
  page.add(Paragraph{hooks_text(run)});
  if (!more.steps.empty()) page.add(steps_table(run, more.steps));
  if (!more.joined.empty()) page.add(run_ahead_page(run, more.steps, more.joined));
  if (more.ddp_statistics) page.add(statistics_page(run, more.steps));
  if (more.why) page.add(why_page(run));
  return page;
}

Record record_of(const Comparison& run, const MoreOfSteps& more) {
  const std::vector<Result> results = run.results();
  std::vector<Record> reasons = more.why ? why_records(run) : std::vector<Record>(results.size());
  List records;
  for (std::size_t i = 0; i < results.size(); ++i) {
    Record record = result_record(run.scenario, results[i]);
    if (!more.steps.empty())
      record.add(fields::steps, steps_record(run, more.steps[i], results[i]));
    if (!more.joined.empty())
      record.add(fields::run_ahead, run_ahead_record(more.steps[i], more.joined[i]));
    if (more.ddp_statistics)
      record.add(fields::ddp_statistics,
                 statistics_value(more.steps.empty() ? averages_of(*results[i].step)
                                                     : more.steps[i].logged));
    if (more.why) record.add(fields::why, std::move(reasons[i]));
    records.emplace_back(std::move(record));
  }
  return run_record(run.scenario, std::move(records));
}

std::string hooks_of(const Comparison& run, bool json) {
  std::vector<LoggedStep> logged;
  for (const Step& step : run.compared)
    logged.push_back({strategy_label(step.training), "predicted", &step});
  return hooks_log(run.scenario, logged, json);
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
             Flag::set | Flag::json | Flag::csv | Flag::trace | Flag::tables | Flag::laws_only, own,
             options))
    return exit_done;
  if (options.files.empty())
    throw InputError("run needs a scenario: ddpsim run scenarios/examples/first.yaml");
  if ((!options.trace.empty() || !log.empty()) && options.files.size() > 1)
    throw InputError("--trace and --hooks-log take one scenario at a time");
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
  check_results(options, {{"--hooks-log", log}}, {plugin.files, {}});

  Pages pages(options, {log});
  List records;
  Table rows{run_columns()};
  std::string trace, hooks;
  for (const std::string& file : options.files) {
    Scenario scenario = read_scenario(file, options.set);
    if (!plugin.files.empty()) check_plugins(plugins, scenario.training);
    const Comparison run(std::move(scenario), options.laws_only);
    const MoreOfSteps more = more_of(run, steps_asked ? count : 0, ahead, ddp_statistics, why);
    if (pages.wanted()) pages.add(page_of(run, more));
    for (const Result& result : run.results()) rows.add(run_row(run.scenario, result));
    if (!options.json.empty()) records.emplace_back(record_of(run, more));
    if (!options.trace.empty()) trace = chrome_trace(run.scenario, run.named());
    if (!log.empty()) hooks = hooks_of(run, wants_json(log));
  }
  Outputs outputs;
  pages.add_to(outputs);
  outputs.add(options.json,
              json_text(json_of(records.size() == 1 ? records.front() : FieldValue(records))));
  outputs.add(options.csv, csv_of(rows));
  outputs.add(options.trace, trace);
  outputs.add(log, hooks);
  outputs.commit();
  return exit_done;
}

}  // namespace ddpsim
