#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "tools/command/cluster_flags.hpp"
#include "tools/command/command.hpp"
#include "tools/command/pages.hpp"
#include "tools/plan/plan_report.hpp"
#include "tools/plan/plan_words.hpp"
#include "tools/report/writers/csv.hpp"
#include "tools/report/writers/json_writer.hpp"
#include "tools/report/writers/notes.hpp"
#include "tools/report/writers/output.hpp"
#include "tools/report/writers/progress.hpp"

namespace ddpsim {
namespace {

namespace po = boost::program_options;

const Usage plan_usage{
    "ddpsim plan [flags] SCENARIO",
    "Tries strategies, batches and numbers of GPUs for the scenario's model on the scenario's kind "
    "of cluster: what does not\n"
    "fit a device's memory falls out, the others are predicted. It prints the quickest, and the "
    "cheapest where numbers of\n"
    "GPUs are compared, what fell out and why, which keys to write into the scenario, and the "
    "Python that wraps the model.\n"
    "Tried are `bucketed` and `fsdp`, this with and without resharding after forward, in mixed "
    "precision and with a replica\n"
    "on each node; `zero1`, `zero2` and `zero3` where the scenario's `compare` names them; "
    "activation checkpoints; and per rank\n"
    "the scenario's batch and powers of two, up to the first that does not fit. What --set says "
    "of these keys stays. All else\n"
    "is as in the scenario: micro_batches, units, comm hooks. Calibrated like `ddpsim run`.",
    "ddpsim plan scenarios/examples/first.yaml --gpus 1..8*2"};

struct PlanFlags {
  CommonOptions common;
  ClusterFlags cluster;
  PlanWords words;
};

po::options_description described(PlanFlags& flags) {
  po::options_description own;
  own.add_options()("gpus", po::value(&flags.words.gpus)->value_name("NUMBERS"),
                    "how many GPUs there are in all, such as 8..64*2 or 8,24: whole nodes of the "
                    "scenario's cluster, or a part of one (as many as the scenario has)")(
      "batches", po::value(&flags.words.batches)->value_name("NUMBERS"),
      "samples of a micro-batch of one rank, such as 1..16*2 (powers of two, up to the first that "
      "does not fit)")("strategies", po::value(&flags.words.strategies)->value_name("NAMES"),
                       "what is tried, such as bucketed,overlap,fsdp (bucketed, what compare names "
                       "of zero1 to zero3, fsdp)")(
      "best", po::value(&flags.words.best)->value_name("N"), "how many are printed (10)");
  flags.cluster.add_to(own);
  return own;
}

PlanRequest request_of(const PlanFlags& flags) {
  const CommonOptions& common = flags.common;
  if (common.files.size() != 1)
    throw InputError(
        "plan needs one scenario: ddpsim plan scenarios/examples/first.yaml --gpus 1..8*2");
  return plan_request(common.files.front(), common.set, common.laws_only, flags.words);
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
  const std::size_t most = most_planned_rows(flags.words);
  check_results(options);
  Progress progress(options.quiet);
  const TrainingPlan plan =
      make_plan(request, [&](double done) { progress.show("combinations", done); });
  if (!options.quiet) add_notes(plan.notes);
  Pages pages(options);
  if (pages.wanted()) pages.add(plan_page(plan, most));
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
