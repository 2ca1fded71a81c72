#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/nearest.hpp"
#include "tools/command/cluster_flags.hpp"
#include "tools/command/command.hpp"
#include "tools/command/pages.hpp"
#include "tools/plan/plan_report.hpp"
#include "tools/report/writers/csv.hpp"
#include "tools/report/writers/json_writer.hpp"
#include "tools/report/writers/notes.hpp"
#include "tools/report/writers/output.hpp"
#include "tools/report/writers/progress.hpp"
#include "tools/study/flag_values.hpp"
#include "tools/study/grid.hpp"

namespace ddpsim {
namespace {

namespace po = boost::program_options;

constexpr int most_planned_gpus = 1'000'000, most_planned_batch = 10'000'000, most_shown = 10'000;
constexpr std::size_t most_sizes = 1000, most_batches = 1000;

const Usage plan_usage{
    "ddpsim plan [flags] SCENARIO",
    "Tries strategies, batches and numbers of GPUs for the scenario's model on the scenario's kind "
    "of cluster: what does not\n"
    "fit a device's memory falls out, the others are predicted. It prints the quickest, and the "
    "cheapest where numbers of\n"
    "GPUs are compared, what fell out and why, and which keys to write into the scenario. Tried "
    "are `bucketed` and `fsdp`,\n"
    "with and without resharding after forward, and per rank the scenario's batch and powers of "
    "two, up to the first that\n"
    "does not fit; what --set says of these keys stays. All else is as in the scenario: micro_"
    "batches, units, comm hooks.\n"
    "Calibrated like `ddpsim run`.",
    "ddpsim plan scenarios/examples/first.yaml --gpus 1..8*2"};

struct PlanFlags {
  CommonOptions common;
  ClusterFlags cluster;
  std::string gpus, batches, strategies, best = "10";
};

po::options_description described(PlanFlags& flags) {
  po::options_description own;
  own.add_options()("gpus", po::value(&flags.gpus)->value_name("NUMBERS"),
                    "how many GPUs there are in all, such as 8..64*2 or 8,24: whole nodes of the "
                    "scenario's cluster, or a part of one (as many as the scenario has)")(
      "batches", po::value(&flags.batches)->value_name("NUMBERS"),
      "samples of a micro-batch of one rank, such as 1..16*2 (powers of two, up to the first that "
      "does not fit)")("strategies", po::value(&flags.strategies)->value_name("NAMES"),
                       "what is tried, such as bucketed,overlap,fsdp (bucketed,fsdp)")(
      "best", po::value(&flags.best)->value_name("N"), "how many are printed (10)");
  flags.cluster.add_to(own);
  return own;
}

std::vector<int> numbers_of(const std::string& flag, const std::string& text, int most,
                            std::size_t most_numbers) {
  std::vector<int> numbers;
  if (text.empty()) return numbers;
  for (const std::string& value : parse_values(flag + " " + text, text)) {
    const int number = count_of(flag, value, 1, most);
    if (std::ranges::find(numbers, number) == numbers.end()) numbers.push_back(number);
  }
  if (numbers.size() > most_numbers)
    throw InputError(fmt::format("{} {}: {} numbers are too many: at most {}", flag, text,
                                 numbers.size(), most_numbers));
  return numbers;
}

/// Strategies that average gradients, which `none` does not.
std::vector<Strategy> strategies_of(const std::string& text) {
  std::vector<Strategy> strategies;
  if (text.empty()) return strategies;
  std::vector<std::string> known;
  for (const Strategy strategy : all_strategies)
    if (strategy != Strategy::none) known.emplace_back(name_of(strategy));
  for (const std::string& name : parse_values("--strategies " + text, text)) {
    if (std::ranges::find(known, name) == known.end()) {
      const std::string guess = nearest(name, known);
      throw InputError(
          fmt::format("--strategies {}: expected strategies that average gradients "
                      "({}), got \"{}\"{}",
                      text, fmt::join(known, ", "), name,
                      guess.empty() ? "" : "; did you mean \"" + guess + "\"?"));
    }
    strategies.push_back(*strategy_named(name));
  }
  return strategies;
}

PlanRequest request_of(const PlanFlags& flags) {
  const CommonOptions& common = flags.common;
  if (common.files.size() != 1)
    throw InputError(
        "plan needs one scenario: ddpsim plan scenarios/examples/first.yaml --gpus 1..8*2");
  for (const Setting& setting : common.set)
    for (const char* key : {"cluster.nodes", "cluster.ranks"})
      if (!flags.gpus.empty() && setting.key == key)
        throw InputError(
            fmt::format("--gpus says how many there are: leave {} out", setting_text(setting)));
  return {.file = common.files.front(),
          .set = common.set,
          .laws_only = common.laws_only,
          .gpus = numbers_of("--gpus", flags.gpus, most_planned_gpus, most_sizes),
          .batches = numbers_of("--batches", flags.batches, most_planned_batch, most_batches),
          .strategies = strategies_of(flags.strategies)};
}

}  // namespace

int plan_command(const std::vector<std::string>& arguments) {
  PlanFlags flags;
  CommonOptions& options = flags.common;
  if (!parse(arguments, plan_usage,
             Flag::set | Flag::json | Flag::csv | Flag::tables | Flag::laws_only, described(flags),
             options))
    return exit_done;
  options.prepend(flags.cluster.settings());
  const PlanRequest request = request_of(flags);
  const int most = count_of("--best", flags.best, 1, most_shown);
  check_results(options);
  Progress progress(options.quiet);
  const TrainingPlan plan =
      make_plan(request, [&](double done) { progress.show("combinations", done); });
  if (!options.quiet) add_notes(plan.notes);
  Pages pages(options);
  if (pages.wanted()) pages.add(plan_page(plan, static_cast<std::size_t>(most)));
  Outputs outputs;
  pages.add_to(outputs);
  if (!options.json.empty()) outputs.add(options.json, json_text(json_of(plan_record(plan))));
  outputs.add(options.csv, csv_of(plan_table(plan)));
  outputs.commit();
  const std::string nothing = nothing_fits_text(plan);
  if (nothing.empty()) return exit_done;
  note("ddpsim: {}", nothing);
  return exit_failure;
}

}  // namespace ddpsim
