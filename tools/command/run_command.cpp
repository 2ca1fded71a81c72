#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tools/command/cluster_flags.hpp"
#include "tools/command/command.hpp"
#include "tools/command/pages.hpp"
#include "tools/command/plugin_flag.hpp"
#include "tools/command/reports.hpp"
#include "tools/kineto/trace.hpp"
#include "tools/report/pages/run_section.hpp"
#include "tools/report/pages/varied_section.hpp"
#include "tools/report/reports/best.hpp"
#include "tools/report/reports/drawn_report.hpp"
#include "tools/report/reports/hooks_log.hpp"
#include "tools/report/reports/results.hpp"
#include "tools/report/reports/run_report.hpp"
#include "tools/report/reports/said_notes.hpp"
#include "tools/report/reports/vary_report.hpp"
#include "tools/report/writers/csv.hpp"
#include "tools/report/writers/json_writer.hpp"
#include "tools/report/writers/notes.hpp"
#include "tools/report/writers/output.hpp"
#include "tools/report/writers/progress.hpp"
#include "tools/study/comparison.hpp"
#include "tools/study/names.hpp"
#include "tools/sweep/expected_time.hpp"

namespace ddpsim {
namespace {

namespace po = boost::program_options;

const Usage run_usage{
    "ddpsim run [flags] SCENARIO...",
    "Predicts a training step under every strategy in the scenario's `compare` list and prints "
    "what each costs.\n"
    "Columns: comm is the sum of all collectives' durations; exposed is how much longer the step "
    "is than without\n"
    "communication (waiting, interference and copies included); overlap is max(0, 1 - exposed / "
    "comm); bound is what\n"
    "most of the critical path is: compute, the link's bandwidth, its latency, launch (the host's "
    "launches), or input,\n"
    "where the step waits for its batches. A scenario with measured rows is calibrated on those "
    "its "
    "`calibrate_on` names first, as\n"
    "`ddpsim score` does.\n"
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

struct RunFlags {
  CommonOptions common;
  ClusterFlags cluster;
  PluginFlag plugin;
  RunRequest request;
  std::string phase, log;
  std::vector<std::string> vary;
  std::string best;

  bool steps_asked() const { return request.steps.has_value(); }
};

po::options_description described(RunFlags& flags) {
  po::options_description own;
  own.add_options()("why", po::bool_switch(&flags.request.why),
                    "for each exposed bucket what held it up, and what would remove it")(
      "steps", po::value<int>()->value_name("N")->notifier([&flags](int count) {
        flags.request.steps = count;
      }),
      "N consecutive steps from the first on: initial buckets, rebuild, steady state")(
      "scaling", po::value<int>()->value_name("RANKS")->notifier([&flags](int most) {
        flags.request.scaling = most;
      }),
      "step, efficiency and throughput on 1, 2, 4, ... ranks up to so many, each with the same "
      "batch")("seeds", po::value<int>()->value_name("N")->notifier([&flags](int count) {
    flags.request.seeds = count;
  }),
               "N steps with the ranks' computing times drawn anew in each (cluster.jitter): the "
               "median, 10th, 90th and 99th percentile of step and exposed")(
      "run-ahead", po::bool_switch(&flags.request.run_ahead),
      "with --steps: also as one run, in which the host launches steps ahead of the GPU")(
      "phase", po::value(&flags.phase)->value_name("steady|first"),
      "DDP's first iteration, or the steady state: the same as --set training.phase=first")(
      "ddp-statistics", po::bool_switch(&flags.request.ddp_statistics),
      "what PyTorch's DDP logger would print, beside ours")(
      "vary", po::value(&flags.vary)->value_name("KEY=VALUES"),
      "the values a key takes, side by side in one table (may be repeated): "
      "training.comm_hook=none,fp16_compress, or 1MiB..64MiB*2")(
      "best", po::value(&flags.best)->value_name("FIGURE"),
      "with --vary: sorts by a figure, the best first: step, mfu, tokens_per_second, ...")(
      "hooks-log", po::value(&flags.log)->value_name("FILE"),
      "write every hook in the order they fire, with host and device time (CSV; JSON for *.json)");
  flags.cluster.add_to(own);
  flags.plugin.add_to(own);
  return own;
}

/// Throws InputError for flags that do not go together.
void check(const RunFlags& flags) {
  const CommonOptions& common = flags.common;
  if (common.files.empty())
    throw InputError("run needs a scenario: ddpsim run scenarios/examples/first.yaml");
  if ((!common.trace.empty() || !flags.log.empty()) && common.files.size() > 1)
    throw InputError("--trace and --hooks-log take one scenario at a time");
  check(flags.request);
  if (flags.steps_asked() && !flags.phase.empty())
    throw InputError("--steps begins with the first: it takes no --phase");
  if (flags.vary.empty() && !flags.best.empty())
    throw InputError("--best sorts what --vary makes: say what to vary");
  if (flags.vary.empty()) return;
  if (flags.steps_asked() || flags.request.ddp_statistics)
    throw InputError("--vary takes neither --steps nor --ddp-statistics");
  if (flags.request.scaling)
    throw InputError("--scaling takes no --vary: cluster.ranks varies by itself");
  if (flags.request.why) throw InputError("--why takes no --vary");
  if (flags.request.seeds) throw InputError("--seeds takes no --vary");
  if (!flags.log.empty()) throw InputError("--hooks-log takes no --vary");
  if (common.files.size() > 1) throw InputError("--vary takes one scenario at a time");
  if (!common.trace.empty())
    throw InputError("--trace takes no --vary: run the combination you want to look at with --set");
}

/// All combinations, with a word on how long a large grid takes.
Variants watched_variants(const CommonOptions& options, const Grid& grid) {
  Progress progress(options.quiet);
  bool told = options.quiet || progress.shown();
  const auto begin = std::chrono::steady_clock::now();
  return run_variants(
      options.files[0], options.set, grid, options.laws_only, [&](std::size_t done) {
        const Seconds rest =
            expected_rest(done, grid.points() - done, std::chrono::steady_clock::now() - begin);
        const bool is_long = rest >= long_wait;
        if (is_long && !std::exchange(told, true))
          note("note: {} of {} combinations are left, {}", grid.points() - done, grid.points(),
               about(rest));
        progress.show(fmt::format("{} of {} combinations{}", done, grid.points(),
                                  is_long ? ", " + about(rest) + " left" : ""),
                      static_cast<double>(done) / static_cast<double>(grid.points()));
      });
}

/// Every combination of --vary, side by side; the exit code. `best`: sorted by that figure.
int compare_varied(const CommonOptions& options, const std::vector<std::string>& vary,
                   const std::string& best) {
  const std::optional<Field> sorted_by =
      best.empty() ? std::nullopt : std::optional(best_field(best));
  std::vector<Axis> axes;
  MoreInputs more;
  for (const std::string& text : vary) {
    const Axis& axis = axes.emplace_back(parse_axis(text));
    more.values.insert(more.values.end(), axis.values.begin(), axis.values.end());
  }
  check_results(options, {}, more);
  const Grid grid(std::move(axes));
  const Variants variants = watched_variants(options, grid);
  check_best(variants, sorted_by);
  Reports reports(options);
  std::vector<std::string> notes;
  if (!options.quiet || reports.wanted())
    notes = notes_on_all(variants, options.files[0], options.set, sorted_by);
  if (!options.quiet) add_notes(notes);
  Pages pages(options);
  if (pages.wanted()) {
    Page page = varied_page(variants, sorted_by);
    page.add(Paragraph{varied_accuracy(variants)});
    pages.add(page);
  }
  if (reports.wanted())
    reports.add(varied_section(variants, grid, sorted_by, notes), options.files[0]);
  Outputs outputs;
  pages.add_to(outputs);
  reports.add_to(outputs, "Predicted training steps");
  if (!options.json.empty())
    outputs.add(options.json, json_text(json_of(varied_records(variants, options.set))));
  outputs.add(options.csv, csv_of(varied_table(variants, sorted_by)));
  outputs.commit();
  if (variants.refused.empty()) return exit_done;
  const RefusedRun& first = variants.refused.front();
  note("ddpsim: {} of {} points are refused; the first, {}: {}", variants.refused.size(),
       grid.points(), short_label(first.settings), first.problem);
  return exit_input;
}

MoreOfSteps watched_more(const Comparison& run, const RunRequest& request, bool quiet) {
  Progress progress(quiet);
  return more_of(run, request, [&](int done) {
    progress.show(seeds_done(done, *request.seeds), static_cast<double>(done) / *request.seeds);
  });
}

std::string hooks_of(const Comparison& run, bool json) {
  std::vector<LoggedStep> logged;
  for (const Step& step : run.compared)
    logged.push_back({strategy_label(step.training), "predicted", &step});
  return hooks_log(run.scenario, logged, json);
}

/// One or several scenarios, each by itself.
void compare_strategies(const RunFlags& flags, const Plugins& plugins) {
  const CommonOptions& options = flags.common;
  check_results(options, {{"--hooks-log", flags.log}}, {flags.plugin.files, {}});
  Pages pages(options, {flags.log});
  Reports reports(options);
  List records;
  Table rows{csv_columns(flags.request)};
  std::string hooks;
  std::unique_ptr<const Comparison> last;  // a trace of it is made while it is written
  Outputs outputs;
  for (const std::string& file : options.files) {
    Scenario scenario = read_scenario(file, options.set);
    if (!flags.plugin.files.empty()) check_plugins(plugins, scenario.training);
    last = std::make_unique<const Comparison>(std::move(scenario), options.laws_only);
    const Comparison& run = *last;
    const MoreOfSteps more = watched_more(run, flags.request, options.quiet);
    std::vector<std::string> notes;
    if (!options.quiet || !options.json.empty() || reports.wanted())
      notes = run_notes(run, file, options.set, more.curves);
    if (!options.quiet) add_notes(notes);
    if (pages.wanted()) pages.add(run_page(run, more));
    if (reports.wanted())
      reports.add(
          run_section(run, more, fmt::format("timeline-{}", records.size() + rows.rows.size()),
                      {{}, options.laws_only, options.set}, notes),
          file);
    for (const Record& row : csv_rows(run, more)) rows.add(row);
    if (!options.json.empty()) records.emplace_back(run_record(run, more, notes));
    add_trace(outputs, options.trace, run.scenario, run.named(), options.traced_ranks());
    if (!flags.log.empty()) hooks = hooks_of(run, wants_json(flags.log));
  }
  pages.add_to(outputs);
  reports.add_to(outputs, "Predicted training steps");
  outputs.add(options.json,
              json_text(json_of(records.size() == 1 ? records.front() : FieldValue(records))));
  outputs.add(options.csv, csv_of(rows));
  outputs.add(flags.log, hooks);
  outputs.commit();
}

}  // namespace

int run_command(const std::vector<std::string>& arguments) {
  RunFlags flags;
  if (!parse(arguments, run_usage,
             Flag::set | Flag::json | Flag::csv | Flag::trace | Flag::tables | Flag::laws_only |
                 Flag::report,
             described(flags), flags.common))
    return exit_done;
  check(flags);
  const Plugins plugins = flags.plugin.open();
  flags.common.prepend(flags.cluster.settings());
  if (!flags.phase.empty())
    flags.common.prepend({{"training.phase", flags.phase, "--phase " + shown(flags.phase)}});
  if (!flags.vary.empty()) return compare_varied(flags.common, flags.vary, flags.best);
  compare_strategies(flags, plugins);
  return exit_done;
}

}  // namespace ddpsim
