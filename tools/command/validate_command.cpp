#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "scenarios/reader/cluster/calibration_reader.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "sim/tune/parallel.hpp"
#include "tools/command/command.hpp"
#include "tools/command/job_flags.hpp"
#include "tools/command/pages.hpp"
#include "tools/command/plugin_flag.hpp"
#include "tools/command/reports.hpp"
#include "tools/command/tolerance.hpp"
#include "tools/kineto/trace.hpp"
#include "tools/report/pages/validate_section.hpp"
#include "tools/report/reports/hooks_log.hpp"
#include "tools/report/reports/rank_exceptions.hpp"
#include "tools/report/reports/validation_record.hpp"
#include "tools/report/reports/validation_report.hpp"
#include "tools/report/writers/csv.hpp"
#include "tools/report/writers/json_writer.hpp"
#include "tools/report/writers/notes.hpp"
#include "tools/report/writers/output.hpp"
#include "tools/report/writers/progress.hpp"
#include "tools/study/asked_collectives.hpp"
#include "tools/study/file_notes.hpp"
#include "tools/study/flag_values.hpp"
#include "tools/study/names.hpp"
#include "tools/study/other_machine.hpp"
#include "tools/study/step_jobs.hpp"

namespace ddpsim {
namespace {

const Usage validate_usage{
    "ddpsim validate [flags] SCENARIO",
    "Measures this machine, runs the scenario's steps for real (processes, sockets, "
    "gradients), predicts the very same\n"
    "schedules, and prints both sides down to the bucket. The scenario's device and "
    "links are replaced by what is\n"
    "measured: all-reduces first, kernels in steps without communication that take "
    "turns with the others. Strategies\n"
    "are interleaved, so that drift hits all alike, and so is what --vary gives keys of "
    "`training`: comm hooks take turns.\n"
    "An all-reduce counts from the last rank's arrival. Gradients are checked after "
    "every strategy. Exit code 3 if the\n"
    "median error of the step is beyond --tolerance.",
    "ddpsim validate scenarios/examples/mlp-2ranks.yaml --backend gloo --ranks 2"};

struct ValidateRequest {
  CommonOptions common;
  JobFlags job;
  PluginFlag plugin;
  ValidateOptions options;
  std::vector<Bytes> caps;
  std::vector<std::string> vary;
  double tolerance = -1;
  std::string log, calibration;
  std::string agreement;  ///< what all ranks must have been asked for alike
};

constexpr std::size_t most_combinations = 100;  ///< each is run for real

/// What is run, and of each what varies.
struct ValidatedVariants {
  std::vector<Training> trainings;
  std::vector<std::vector<Setting>> settings;
};

bool sets_buckets(const std::string& key) {
  constexpr std::array<std::string_view, 4> keys{"training.bucket_cap", "training.bucket_caps",
                                                 "training.buckets", "training.parameter_groups"};
  return std::ranges::find(keys, key) != keys.end();
}

/// Throws InputError for settings that flags take the place of.
void check_settings(const ValidateRequest& request) {
  for (const Setting& setting : request.common.set) {
    if (!request.caps.empty() && sets_buckets(setting.key))
      throw InputError(
          fmt::format("{} and --caps both set the buckets: give one", setting_text(setting)));
    if (!request.calibration.empty() && setting.key == "cluster.calibration")
      throw InputError(
          fmt::format("{} and --calibration both name a calibration: predictions are made of that "
                      "of --calibration alone; leave the setting out",
                      setting_text(setting)));
  }
}

Grid grid_of(const ValidateRequest& request) {
  std::vector<Axis> axes;
  for (const std::string& text : request.vary) {
    const std::string& key = axes.emplace_back(parse_axis(text)).key;
    if (!key.starts_with("training."))
      throw InputError(
          fmt::format("--vary {}: validate varies keys of `training` alone, such as "
                      "training.comm_hook; run validate once for each of the others",
                      key));
    if (!request.caps.empty() && sets_buckets(key))
      throw InputError(fmt::format("--vary {} and --caps both set the buckets: give one", key));
  }
  Grid grid(std::move(axes));
  if (grid.points() > most_combinations)
    throw InputError(fmt::format("--vary makes {} combinations: validate runs at most {}",
                                 grid.points(), most_combinations));
  return grid;
}

/// `scenario` as it is, or `bucketed` under each combination of --vary and the others under the
/// first.
/// Throws InputError for what would change more than how gradients are averaged.
ValidatedVariants variants_of(const Scenario& scenario, const ValidateRequest& request,
                              const Plugins& plugins) {
  ValidatedVariants variants;
  if (request.vary.empty()) {
    check_plugins(plugins, scenario.training);
    variants.trainings = trainings_to_validate(scenario, request.caps);
    variants.settings.resize(variants.trainings.size());
    return variants;
  }
  const Grid grid = grid_of(request);
  check_varied_alone(grid, request.common.set);
  std::optional<std::uint64_t> none;  // the first combination's
  for (std::size_t point = 0; point < grid.points(); ++point) {
    const std::vector<Setting> settings = grid.settings(point);
    std::vector<Setting> overrides = request.common.set;
    overrides.insert(overrides.end(), settings.begin(), settings.end());
    Scenario varied = read_scenario(request.common.files[0], overrides);
    check_plugins(plugins, varied.training);
    varied.cluster = scenario.cluster;
    const std::vector<Training> trainings = trainings_to_validate(varied, request.caps);
    const std::uint64_t alone = program::fingerprint(jobs_of(varied, {trainings.front()}).front());
    if (none && alone != *none)
      throw InputError(
          fmt::format("--vary {}: the step without communication, to which the others are "
                      "compared, is not the same; run validate once for each",
                      describe_point(grid, point)));
    none = alone;
    for (const Training& training : trainings) {
      const bool varies = training.strategy == Strategy::bucketed;
      if (point > 0 && !varies) continue;
      variants.trainings.push_back(training);
      variants.settings.push_back(varies ? settings : std::vector<Setting>{});
    }
  }
  if (std::ranges::all_of(variants.settings, &std::vector<Setting>::empty))
    throw InputError("--vary varies `bucketed`, which is not in the scenario's `compare`");
  return variants;
}

/// Collectives larger than any of the steps tell nothing of them. The size of an all-gather is that
/// of its result.
Bytes enough_for(const std::vector<program::Job>& jobs) {
  Bytes most = 2 * MiB;
  for (const program::Job& job : jobs)
    for (const Work& work : job.works) {
      if (!is_collective(work.operation)) continue;
      std::int64_t parts = 1;
      if (work.operation == Operation::all_gather)
        parts = work.group > 0 ? work.group : static_cast<std::int64_t>(job.ranks());
      most = std::max(most, 2 * parts * work.payload);
    }
  return Bytes{static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(most.count)))};
}

/// What rank 0 says in the end.
int report(const ValidateRequest& request, const Validation& validation) {
  Outputs outputs;
  if (!request.common.trace.empty()) {
    std::vector<NamedStep> named;
    for (const ValidatedStep& step : validation.steps) {
      const std::string label = label_of(step);
      named.push_back({label + ", predicted", &step.predicted});
      named.push_back({label + ", measured", &step.measured});
    }
    add_trace(outputs, request.common.trace, validation.scenario, named,
              request.common.traced_ranks());
  }
  Pages pages(request.common, {request.log});
  if (pages.wanted()) pages.add(validation_page(validation));
  pages.add_to(outputs);
  Reports reports(request.common);
  if (reports.wanted()) reports.add(validate_section(validation), request.common.files[0]);
  reports.add_to(outputs, "Predicted and measured");
  outputs.add(request.common.json, json_text(json_of(validation_record(validation))));
  outputs.add(request.common.csv, csv_of(validation_rows(validation)));
  if (!request.log.empty()) {
    std::vector<LoggedStep> logged;
    for (const ValidatedStep& step : validation.steps) {
      const std::string label = label_of(step);
      logged.push_back({label, "predicted", &step.predicted});
      logged.push_back({label, "measured", &step.measured});
    }
    outputs.add(request.log, hooks_log(validation.scenario, logged, wants_json(request.log)));
  }
  outputs.commit();
  if (!request.common.quiet) add_notes(validation_notes(validation));
  for (const ValidatedStep& step : validation.steps) {
    if (step.overflows > 0)
      note("ddpsim: {} gradients became infinite in 16 bit under {}", step.overflows,
           label_of(step));
    if (!step.gradients.good()) {
      note("ddpsim: gradients are wrong under {}", label_of(step));
      return exit_failure;
    }
  }
  return held_to_tolerance(median_step_error(validation), request.tolerance);
}

/// How much is measured. What is asked for is measured in full; of the rest, what the time allows.
void read_counts(const std::string& steps, const std::string& warm_up, const std::string& repeats,
                 const std::string& within, ValidateOptions& options) {
  options.within = std::chrono::seconds{50};
  if (!within.empty()) options.within = duration_of("--within", within);
  if (!steps.empty()) options.fewest_steps = options.steps = count_of("--steps", steps, 1, 100000);
  if (!warm_up.empty())
    options.fewest_warm_up = options.warm_up = count_of("--warm-up", warm_up, 0, 100000);
  if (repeats.empty())
    options.measure.within = scaled(*options.within, 0.7);
  else
    options.measure.repeats = count_of("--repeats", repeats, 1, 10000);
}

/// What the flags ask for; nothing if they ask for help.
std::optional<ValidateRequest> validate_request(const std::vector<std::string>& arguments) {
  ValidateRequest request;
  std::string steps, warm_up, repeats, within, caps, tolerance;
  boost::program_options::options_description own;
  request.job.add_to(own);
  request.plugin.add_to(own);
  using boost::program_options::value;
  own.add_options()(
      "steps", value(&steps)->value_name("N"),
      "measured steps of each strategy (default: 20, or as many as --within leaves time for)")(
      "warm-up", value(&warm_up)->value_name("N"), "steps before those (default: 5, or fewer)")(
      "caps", value(&caps)->value_name("LIST"),
      "run `bucketed` once for each of these caps, such as 1MiB,4MiB,25MiB")(
      "vary", value(&request.vary)->value_name("KEY=VALUES"),
      "run `bucketed` once for each value of a key of `training` (may be repeated; the other "
      "strategies run with the first): training.comm_hook=none,fp16_compress")(
      "calibration", value(&request.calibration)->value_name("FILE"),
      "predict from what `ddpsim calibrate` measured before")(
      "repeats", value(&repeats)->value_name("N"),
      "of each measurement of the calibration; of kernels at least (default: 15, or fewer)")(
      "hooks-log", value(&request.log)->value_name("FILE"),
      "write every hook in the order they fire, predicted and measured (CSV; JSON for *.json)")(
      "within", value(&within)->value_name("TIME"),
      "about how long it may measure: fewer repeats and steps are made then, where --repeats, "
      "--steps and --warm-up are not given, of steps 5 at least (default: 50 s)")(
      "tolerance", value(&tolerance)->value_name("SHARE"),
      "exit with code 3 if the median error of the step is larger, such as 5%");
  if (!parse(arguments, validate_usage,
             Flag::set | Flag::json | Flag::csv | Flag::trace | Flag::tables | Flag::report, own,
             request.common))
    return std::nullopt;
  if (request.common.files.size() != 1)
    throw InputError(
        "validate needs one scenario: ddpsim validate scenarios/examples/mlp-2ranks.yaml --ranks "
        "2");
  read_counts(steps, warm_up, repeats, within, request.options);
  if (request.job.backend == "nccl") {
    request.options.measure.smallest = Bytes{1 << 10};
    request.options.measure.largest = Bytes{1 << 30};
  }
  if (!caps.empty()) request.caps = sizes_of("--caps", caps);
  if (!tolerance.empty()) request.tolerance = share_of("--tolerance", tolerance);
  if (!request.calibration.empty())
    request.options.calibration = read_calibration(request.calibration);
  check_settings(request);
  request.agreement = fmt::format("validate {} {} {} {} {}", steps, warm_up, repeats, within,
                                  !request.calibration.empty());
  return request;
}

/// Refuses results that cannot be written, or would overwrite what is read.
void check_outputs(const ValidateRequest& request) {
  MoreInputs more{request.plugin.files, {}};
  if (!request.calibration.empty()) more.files.push_back(request.calibration);
  for (const std::string& text : request.vary)
    for (const std::string& each : parse_axis(text).values) more.values.push_back(each);
  check_results(request.common, {{"--hooks-log", request.log}}, more);
  if (!request.common.quiet && !request.calibration.empty())
    add_notes(file_notes(request.calibration, {}));
}

/// Says if ranks have to take turns.
void note_turns(const JobOptions& options) {
  const int cores = allowed_cores();
  if (options.backend == "nccl" || options.ranks <= cores) return;
  add_notes({fmt::format(
      "{} ranks share {} processor{} and take turns: all times are longer than those of ranks with "
      "a processor each; --ranks {} gives each its own",
      options.ranks, cores, cores == 1 ? "" : "s", cores)});
}

/// Says where the ranks that run are others than those that measured the calibration, and what was
/// doubtful when it was measured.
void note_calibration(Backend& backend, const Workload& workload, const ValidateRequest& request) {
  if (request.calibration.empty() || request.common.quiet || backend.rank() != 0) return;
  Calibration here = provenance_of(backend, workload);
  here.backend = request.job.backend;
  if (const std::string others = differences_from(*request.options.calibration, here);
      !others.empty())
    add_notes(
        {fmt::format("{} was measured elsewhere than what runs now, and its times are not "
                     "those of this job ({}): leave --calibration out, or calibrate here",
                     request.calibration, others)});
  for (const std::string& doubt : request.options.calibration->doubts)
    add_notes({fmt::format("{} is doubtful: {}", request.calibration, doubt)});
}

/// Called by every rank; what rank 0 gets back is complete.
Validation validated(Backend& backend, const Scenario& scenario, const ValidatedVariants& variants,
                     const std::vector<program::Job>& jobs, const ValidateRequest& request) {
  note_calibration(backend, scenario.workload, request);
  Progress progress(request.common.quiet || backend.rank() != 0, Progress::InLogs::yes);
  Watch watch;
  watch.progress = [&](const std::string& what, double done) { progress.show(what, done); };
  Validation validation =
      validate(backend, scenario, variants.trainings, jobs, request.options, watch);
  for (std::size_t s = 0; s < variants.settings.size(); ++s)
    validation.steps[s].settings = variants.settings[s];
  validation.mode = fmt::format("{}, {} rank{}, {}", request.job.backend, backend.ranks(),
                                backend.ranks() == 1 ? "" : "s", backend.link_name());
  validation.busy_kernels = !has_shapes(validation.scenario.workload);
  validation.calibration.backend = request.job.backend;
  return validation;
}

}  // namespace

int validate_command(const std::vector<std::string>& arguments) {
  std::optional<ValidateRequest> asked = validate_request(arguments);
  if (!asked) return exit_done;
  ValidateRequest& request = *asked;
  Scenario scenario = read_scenario(request.common.files[0], request.common.set);
  check_optimizer(scenario);  // before there are ranks that would all say so
  scenario.cluster.device.synchronous = request.job.synchronous();
  const Plugins plugins = request.plugin.open();
  JobOptions options = request.job.options(scenario.cluster.ranks());
  scenario.cluster = side_by_side(scenario.cluster, link_ranks(options));
  const ValidatedVariants variants = variants_of(scenario, request, plugins);
  const std::vector<program::Job> jobs = jobs_of(scenario, variants.trainings);
  request.options.measure.largest = std::min(request.options.measure.largest, enough_for(jobs));
  if (request.job.synchronous())  // GPUs' other collectives are priced from all-reduces
    request.options.measure.collectives =
        collectives_of(jobs, link_ranks(options), request.options.measure.largest);
  options.plugins = &plugins;
  if (speaks(options)) {
    check_outputs(request);
    if (!request.common.quiet) {
      note_turns(options);
      if (const std::string left = allocation_note(request.job, options, "validate"); !left.empty())
        add_notes({left});
    }
  }
  const double left_before = left_by_others(options);
  options.agreement =
      agreement_of(scenario.workload, jobs, request.agreement + exceptions_text(scenario.cluster));
  return run_job(options, [&](Backend& backend) {
    Validation validation = validated(backend, scenario, variants, jobs, request);
    if (backend.rank() != 0) return exit_done;
    // Once more, for what began meanwhile; the other ranks have nothing left to do.
    validation.left_by_others = std::min(left_before, left_by_others(options));
    return report(request, validation);
  });
}

}  // namespace ddpsim
