#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "sim/predict/predict.hpp"
#include "sim/tune/tune.hpp"
#include "tools/command/cluster_flags.hpp"
#include "tools/command/command.hpp"
#include "tools/command/link_flags.hpp"
#include "tools/command/pages.hpp"
#include "tools/command/reports.hpp"
#include "tools/report/pages/tune_section.hpp"
#include "tools/report/reports/said_notes.hpp"
#include "tools/report/reports/shard_report.hpp"
#include "tools/report/reports/tune_report.hpp"
#include "tools/report/writers/csv.hpp"
#include "tools/report/writers/json_writer.hpp"
#include "tools/report/writers/notes.hpp"
#include "tools/report/writers/output.hpp"
#include "tools/report/writers/progress.hpp"
#include "tools/study/far_rows.hpp"
#include "tools/study/flag_values.hpp"
#include "tools/study/measured_rows.hpp"
#include "tools/study/names.hpp"
#include "tools/study/settings.hpp"
#include "tools/study/tune_request.hpp"

namespace ddpsim {
namespace {

namespace po = boost::program_options;

const Usage tune_usage{
    "ddpsim tune [flags] SCENARIO|PROFILE",
    "Finds the bucket sizes with the shortest step: the best cap and the best pair of caps over "
    "all "
    "distinct outcomes\n"
    "(a cap acts only by which sums of gradients reach it, so there are finitely many, and each is "
    "simulated), and the\n"
    "best free partition into contiguous buckets, beside a lower bound that no partition beats, "
    "DDP's default, one\n"
    "bucket, one per gradient, and MG-WFBP's merge rule. It says whether changing the default "
    "pays, "
    "and what to paste.\n"
    "A workload profile (python -m ddpsim.profile, ddpsim import) is taken with --link, --ranks "
    "and "
    "--device, or with\n"
    "--cluster. A link of Ethernet or InfiniBand joins nodes, of one rank each unless "
    "--ranks-per-node says otherwise;\n"
    "other links are inside one node. --link nvlink4 --link ethernet-100g gives one of each. "
    "With\n"
    "--uncertainty the recommended cap is the one that loses least in the worst case. Calibrated "
    "like `ddpsim run`.\n"
    "Of training.strategy fsdp it finds the units, what is resharded after forward, and the other "
    "settings of fully_shard;\n"
    "of zero1, zero2 and zero3 the options of their variant: sizes of buckets, what is gathered "
    "ahead, overlaps.",
    "ddpsim tune scenarios/seeds/cs336-xl-2xh100.yaml --uncertainty 10%"};

struct Flags {
  ClusterFlags cluster;
  std::string buckets;
  TuneRequest request;

  po::options_description described() {
    po::options_description own;
    cluster.add_to(own);
    own.add_options()(
        "uncertainty", po::value(&request.uncertainty)->value_name("SHARE"),
        "errors of link and kernels to allow for, such as 10%; with a calibration its spread by "
        "default")("objective", po::value(&request.objective)->value_name("NAME"),
                   "step: the shortest; exposed: likewise, as the two differ by a constant but for "
                   "waits for batches; memory: the cap with the smallest largest bucket within "
                   "--within of the shortest step")(
        "within", po::value(&request.within)->value_name("SHARE"), "for the objective memory (1%)")(
        "largest-bucket", po::value(&request.largest_bucket)->value_name("SIZE"),
        "no bucket (its buffer) may be larger, such as 64MiB")(
        "noise", po::value(&request.noise)->value_name("SHARE"),
        "a gain that does not pay: real steps repeat no better (1%)")(
        "threads", po::value(&request.threads)->value_name("N"), "cores to use (all)")(
        "buckets", po::value(&buckets)->value_name("FILE|-"),
        "write the best partition as `buckets:` of a scenario");
    return own;
  }
};

/// Throws InputError where the links do not suit the numbers of nodes and ranks.
void check_flags(const ClusterFlags& size, const std::array<std::string, 2>& links) {
  if (!size.ranks.empty()) count_of("--ranks", size.ranks, 2, 100'000'000);
  if (!size.cluster.empty()) return;
  const auto& [inside, between] = links;
  const int nodes = size.nodes.empty() ? 0 : count_of("--nodes", size.nodes, 1, 100'000);
  std::vector<int> listed;
  if (!size.ranks_per_node.empty()) listed = ranks_of_nodes(size.ranks_per_node);
  const int each = listed.empty() ? 0 : *std::max_element(listed.begin(), listed.end());
  const int ranks = size.ranks.empty() ? 0 : count_of("--ranks", size.ranks, 2, 100'000'000);
  if (ranks == 0 && nodes == 0 && each == 0)
    throw InputError("say how many ranks there are: --ranks N, or --nodes N --ranks-per-node N");
  const bool several = each > 1 || (each == 0 && nodes > 0 && ranks > nodes);
  if (inside.empty() && several)
    throw InputError(fmt::format(
        "--link {} joins nodes: several ranks on a node need a link inside it as well, such as "
        "--link nvlink4 --link {}",
        between, between));
  if (between.empty() &&
      (nodes > 1 || listed.size() > 1 || (nodes == 0 && each > 0 && ranks > each)))
    throw InputError(fmt::format(
        "--link {} joins the ranks of one node: several nodes need a network as well, such as "
        "--link {} --link ethernet-100g",
        inside, inside));
  if (!inside.empty() && !between.empty() && nodes == 0 && each == 0)
    throw InputError(
        fmt::format("--ranks {} may be nodes of any size, as there are links of both kinds: say "
                    "--nodes or --ranks-per-node",
                    size.ranks));
}

/// The flags, as `--set` would say them. Throws InputError.
std::vector<Setting> settings_of(const Flags& flags, const std::string& file) {
  const ClusterFlags& cluster = flags.cluster;
  if (!is_workload_profile(file)) return cluster.settings();
  if (cluster.cluster.empty() && (cluster.links.empty() || cluster.device.empty()))
    throw InputError(
        fmt::format("{} is a workload profile: say what it is to run on, such as --device "
                    "generic-cpu --ranks 2 --link link.yaml, or --cluster dgx-h100",
                    file));
  check_flags(cluster, links_of(cluster.links));
  return cluster.settings();
}

/// The scenario's training with those buckets.
Training bucketed(Training training, const Choice& choice) {
  training.strategy = Strategy::bucketed;
  training.bucket_caps.clear();
  training.parameter_groups = 0;
  training.buckets = choice.buckets;
  return training;
}

/// `tune` of a sharded step: how it is sharded, in place of buckets.
void tune_sharded(const CommonOptions& options, const Flags& flags, const Scenario& scenario) {
  for (const auto& [flag, given] :
       {std::pair("--buckets", flags.buckets), std::pair("--report", options.report)})
    if (!given.empty())
      throw InputError(
          fmt::format("{} {}: is of buckets, and training.strategy is {}, which shards: leave it "
                      "out",
                      flag, given, name_of(scenario.training.strategy)));
  ShardOptions shard = shard_options(flags.request, scenario.training.strategy);
  const CalibratedModel priced = price_calibrated(scenario, options.laws_only);
  const Knowledge knowledge = knowledge_of(scenario, priced);
  Progress progress(options.quiet);
  shard.progress = [&](const std::string& what, double fraction) { progress.show(what, fraction); };
  const ShardTuning tuning = tune_shards(scenario, priced.model, shard);
  std::vector<std::string> notes;
  if (!options.quiet || !options.json.empty())
    notes = shard_notes(scenario, priced, tuning, options.files.front(), options.set);
  if (!options.quiet) add_notes(notes);
  Pages pages(options);
  if (pages.wanted()) {
    Page page = shards_page(scenario, tuning, shard, knowledge);
    if (priced.fit) page.add(Paragraph{describe_calibration(*priced.fit)});
    pages.add(page);
  }
  Outputs outputs;
  pages.add_to(outputs);
  outputs.add(options.json, json_text(json_of(shards_record(scenario, tuning, notes))));
  outputs.add(options.csv, csv_of(shards_table(scenario, tuning)));
  outputs.commit();
}

}  // namespace

int tune_command(const std::vector<std::string>& arguments) {
  CommonOptions options;
  Flags flags;
  if (!parse(arguments, tune_usage,
             Flag::set | Flag::json | Flag::csv | Flag::tables | Flag::laws_only | Flag::report,
             flags.described(), options))
    return exit_done;
  if (options.files.size() != 1)
    throw InputError(
        "tune needs one scenario or workload profile: ddpsim tune scenarios/examples/first.yaml");
  std::vector<std::string> inputs = flags.cluster.links;
  inputs.insert(inputs.end(), {flags.cluster.device, flags.cluster.cluster});
  check_results(options, {{"--buckets", flags.buckets}}, {inputs, {}});
  options.prepend(settings_of(flags, options.files.front()));
  Scenario scenario = read_scenario(options.files.front(), options.set);
  if (shards(scenario.training.strategy)) {
    tune_sharded(options, flags, scenario);
    return exit_done;
  }
  const CalibratedModel priced = price_calibrated(scenario, options.laws_only);
  Reports reports(options);
  const bool noted = !options.quiet || !options.json.empty() || reports.wanted();
  const Knowledge knowledge = knowledge_of(scenario, priced);
  std::vector<std::string> notes;
  if (noted) {
    notes = scenario_notes(scenario, options.files.front(), options.set);
    add_each_once(notes, fit_notes(priced));
    add_each_once(notes, far_row_notes(scenario, priced, knowledge, {Strategy::bucketed}));
  }
  add_each_once(notes, take_as_tuned(scenario.training));
  if (!options.quiet) add_notes(notes);
  TuneOptions tuning_options = tune_options(flags.request, scenario);
  Progress progress(options.quiet);
  tuning_options.progress = [&](const std::string& what, double fraction) {
    progress.show(what, fraction);
  };
  const Tuning tuning = tune(priced.model, scenario.training, tuning_options);
  if (!flags.buckets.empty() && !tuning.best_partition)
    throw InputError(
        "--buckets: free partitions are not searched where gradients are of several types or "
        "sparse");
  if (noted) {
    const std::vector<std::string> unfit =
        unfit_notes(scenario, tuning, options.files.front(), options.set);
    if (!options.quiet) add_notes(unfit);
    add_each_once(notes, unfit);
  }

  Pages pages(options, {flags.buckets});
  if (pages.wanted()) {
    Page page = tune_page(scenario, tuning, tuning_options, knowledge);
    if (priced.fit) page.add(Paragraph{describe_calibration(*priced.fit)});
    if (knowledge.accuracy) page.add(Paragraph{sentence(*knowledge.accuracy)});
    pages.add(page);
  }
  if (reports.wanted()) {
    Training none = scenario.training;
    none.strategy = Strategy::none;
    const TunedSteps tuned{predict(priced.model, none),
                           predict(priced.model, bucketed(scenario.training, tuning.standard)),
                           predict(priced.model, bucketed(scenario.training, tuning.advice.choice)),
                           knowledge, priced.fit};
    reports.add(tune_section(scenario, tuning, tuning_options, tuned, notes),
                options.files.front());
  }
  Outputs outputs;
  pages.add_to(outputs);
  reports.add_to(outputs, "Bucket sizes");
  outputs.add(options.json, json_text(json_of(tune_record(scenario, tuning, knowledge, notes))));
  outputs.add(options.csv, csv_of(caps_table(tuning)));
  if (!flags.buckets.empty())
    outputs.add(flags.buckets, buckets_yaml(tuning.best_partition->buckets, scenario.workload));
  outputs.commit();
  return exit_done;
}

}  // namespace ddpsim
