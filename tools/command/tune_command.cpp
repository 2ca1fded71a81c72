#include <algorithm>

#include <fmt/format.h>

#include "scenarios/reader/quantity_text.hpp"
#include "scenarios/reader/scenario_reader.hpp"
#include "sim/tune/parallel.hpp"
#include "sim/tune/tune.hpp"
#include "tools/command/command.hpp"
#include "tools/command/flag_values.hpp"
#include "tools/command/pages.hpp"
#include "tools/report/csv.hpp"
#include "tools/report/json_writer.hpp"
#include "tools/report/output.hpp"
#include "tools/report/progress.hpp"
#include "tools/report/tune_report.hpp"
#include "tools/study/measured_rows.hpp"
#include "tools/study/names.hpp"
#include "tools/study/settings.hpp"

namespace ddpsim {
namespace {

namespace po = boost::program_options;

const Usage usage{
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
    "A workload profile (tools/torch_profile.py, ddpsim import) is taken with --link, --ranks and "
    "--device. With\n"
    "--uncertainty the recommended cap is the one that loses least in the worst case. Calibrated "
    "like `ddpsim run`.",
    "ddpsim tune scenarios/seeds/cs336-xl-2xh100.yaml --uncertainty 10%"};

struct Flags {
  std::string link, device, ranks, uncertainty, objective = "step", within = "1%", largest,
                                                noise = "1%", threads, buckets;

  po::options_description described() {
    po::options_description own;
    own.add_options()(
        "link", po::value(&link)->value_name("LINK"),
        "for a profile: what joins the ranks, a link's name or the path of a link profile")(
        "ranks", po::value(&ranks)->value_name("N"), "for a profile: how many ranks")(
        "device", po::value(&device)->value_name("DEVICE"),
        "for a profile: the device it was measured on (generic-cpu, h100-sxm, ...)")(
        "uncertainty", po::value(&uncertainty)->value_name("SHARE"),
        "errors of link and kernels to allow for, such as 10%; with a calibration its spread by "
        "default")("objective", po::value(&objective)->value_name("NAME"),
                   "step: the shortest; exposed: likewise, as the two differ by a constant; "
                   "memory: the cap with the smallest "
                   "largest bucket within --within of the shortest step")(
        "within", po::value(&within)->value_name("SHARE"), "for the objective memory (1%)")(
        "largest-bucket", po::value(&largest)->value_name("SIZE"),
        "no bucket (its buffer) may be larger, such as 64MiB")(
        "noise", po::value(&noise)->value_name("SHARE"),
        "a gain that does not pay: real steps repeat no better (1%)")(
        "threads", po::value(&threads)->value_name("N"), "cores to use (all)")(
        "buckets", po::value(&buckets)->value_name("FILE|-"),
        "write the best partition as `buckets:` of a scenario");
    return own;
  }
};

Scenario read(const CommonOptions& options, const Flags& flags) {
  const std::string& file = options.files.front();
  const bool cluster = !flags.link.empty() || !flags.ranks.empty() || !flags.device.empty();
  if (!is_workload_profile(file)) {
    if (cluster)
      throw InputError(fmt::format(
          "{} is a scenario and says its cluster itself: --link, --ranks and --device are for "
          "workload profiles; --set cluster.ranks_per_node=4 changes a scenario",
          file));
    return read_scenario(file, options.set);
  }
  if (flags.link.empty() || flags.ranks.empty() || flags.device.empty())
    throw InputError(
        fmt::format("{} is a workload profile: say what it is to run on, such as --device "
                    "generic-cpu --ranks 2 "
                    "--link link.yaml",
                    file));
  auto overrides = options.set;
  overrides.insert(overrides.begin(),
                   {{"cluster.device", flags.device},
                    {"cluster.ranks_per_node",
                     fmt::format("{}", count_of("--ranks", flags.ranks, 2, 1'000'000))},
                    {"cluster.intra_node", flags.link}});
  return read_profile_as_scenario(file, overrides);
}

/// How far apart repeats of these measurements are, as a share: all of them together at their 90th
/// percentile against their medians, or at their medians against their 10th, whichever is more.
/// Small ones, whose repeats scatter most, count for little, as in a step.
template <typename Measured>
double spread_of(const std::vector<Measured>& measured) {
  double low = 0, median = 0, high = 0;
  for (const Measured& each : measured) {
    low += in_seconds(each.time.low);
    median += in_seconds(each.time.median);
    high += in_seconds(each.time.high);
  }
  return low > 0 && median > 0 ? std::max({high / median, median / low, 1.0}) - 1 : 0;
}

TuneOptions options_of(const Flags& flags, const Scenario& scenario) {
  TuneOptions options;
  const auto objective =
      std::find_if(all_objectives.begin(), all_objectives.end(),
                   [&](Objective each) { return name_of(each) == flags.objective; });
  if (objective == all_objectives.end())
    throw InputError(
        fmt::format("--objective {}: expected step, exposed or memory", flags.objective));
  options.objective = *objective;
  options.within = share_of("--within", flags.within);
  options.noise = share_of("--noise", flags.noise);
  if (!flags.largest.empty())
    options.largest_bucket = sizes_of("--largest-bucket", flags.largest)[0];
  if (!flags.uncertainty.empty()) {
    options.link_uncertainty = options.compute_uncertainty =
        share_of("--uncertainty", flags.uncertainty);
  } else if (scenario.cluster.calibration) {
    options.link_uncertainty = spread_of(scenario.cluster.calibration->all_reduce);
    options.compute_uncertainty = spread_of(scenario.cluster.calibration->tasks);
  }
  options.threads =
      flags.threads.empty() ? allowed_cores() : count_of("--threads", flags.threads, 1, 1024);
  return options;
}

}  // namespace

int tune_command(const std::vector<std::string>& arguments) {
  CommonOptions options;
  Flags flags;
  if (!parse(arguments, usage, Flag::set | Flag::json | Flag::csv | Flag::tables | Flag::laws_only,
             flags.described(), options))
    return exit_done;
  if (options.files.size() != 1)
    throw InputError(
        "tune needs one scenario or workload profile: ddpsim tune scenarios/examples/first.yaml");
  check_results(options, {{"--buckets", flags.buckets}}, {{flags.link, flags.device}, {}});
  const Scenario scenario = read(options, flags);
  const CalibratedModel priced = price_calibrated(scenario, options.laws_only);
  TuneOptions tuning_options = options_of(flags, scenario);
  Progress progress(options.quiet);
  tuning_options.progress = [&](const std::string& what, double fraction) {
    progress.show(what, fraction);
  };
  const Tuning tuning = tune(priced.model, scenario.training, tuning_options);
  if (!flags.buckets.empty() && !tuning.best_partition)
    throw InputError(
        "--buckets: free partitions are not searched where gradients are of several types or "
        "sparse");

  Pages pages(options, {flags.buckets});
  if (pages.wanted()) {
    Page page = tune_page(scenario, priced.model.costs.collective.name(), tuning, tuning_options);
    if (priced.fit) page.add(Paragraph{describe_calibration(*priced.fit)});
    pages.add(page);
  }
  Outputs outputs;
  pages.add_to(outputs);
  outputs.add(options.json, json_text(json_of(tune_record(scenario, tuning))));
  outputs.add(options.csv, csv_of(caps_table(tuning)));
  if (!flags.buckets.empty())
    outputs.add(flags.buckets, buckets_yaml(tuning.best_partition->buckets, scenario.workload));
  outputs.commit();
  return exit_done;
}

}  // namespace ddpsim
