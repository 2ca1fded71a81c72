#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "backend/measure/measure_machine.hpp"
#include "backend/measure/measure_step.hpp"
#include "backend/measure/steal.hpp"
#include "model/workload/architecture.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tools/command/command.hpp"
#include "tools/command/interruptible.hpp"
#include "tools/command/job_flags.hpp"
#include "tools/command/pages.hpp"
#include "tools/report/records/field_kinds.hpp"
#include "tools/report/reports/calibration_file.hpp"
#include "tools/report/writers/notes.hpp"
#include "tools/report/writers/output.hpp"
#include "tools/report/writers/page.hpp"
#include "tools/report/writers/progress.hpp"
#include "tools/study/asked_collectives.hpp"
#include "tools/study/flag_values.hpp"
#include "tools/study/machine_doubts.hpp"
#include "tools/study/step_jobs.hpp"
#include "tools/study/validation.hpp"

namespace ddpsim {
namespace {

const Usage calibrate_usage{
    "ddpsim calibrate [flags] -o FILE [SCENARIO]",
    "Measures on this machine what predictions need: every distinct kernel of the scenario (or of "
    "a "
    "standard set of\n"
    "linear layers), copies, all-reduces from 4 KiB to 64 MiB, the other collectives of the "
    "scenario's steps, launch costs,\n"
    "and how computation and all-reduces slow each other. Medians with their spread go to FILE;\n"
    "`cluster: {calibration: FILE}` in a scenario or `validate --calibration FILE` uses them. FILE "
    "is replaced once all\n"
    "has been measured; Ctrl-C leaves it as it was, and what was measured until then goes to a "
    "file "
    "beside it.",
    "ddpsim calibrate scenarios/examples/mlp-2ranks.yaml --backend gloo --ranks 2 -o machine.yaml"};

/// Linear layers from 256 to 4096 wide, at batch 64.
Scenario standard_set() {
  Scenario scenario;
  scenario.name = "standard set";
  scenario.optimizer = Optimizer::adamw;
  WorkloadSize size;
  size.batch = 64;
  scenario.workload =
      build_workload("standard set", MlpShape{{256, 512, 1024, 1024, 2048, 4096, 1024, 256}}, size);
  scenario.cluster.device.name = "this CPU";
  scenario.cluster.device.peak.fill(FlopRate{1e11});
  scenario.cluster.device.gemm_efficiency.fill(1);
  scenario.cluster.device.memory_bandwidth = Bandwidth{1e10};
  scenario.cluster.intra_node.bandwidth = Bandwidth{1e9};
  scenario.cluster.ranks_per_node = 2;
  return scenario;
}

/// Where an interrupted calibration goes: machine.interrupted.yaml beside machine.yaml, so that
/// nothing takes it for a complete one. Into what is no plain file it goes all the same.
std::string interrupted_place(const std::string& output) {
  const std::filesystem::path path = output;
  std::error_code error;
  if (output == "-" ||
      (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)))
    return output;
  std::filesystem::path beside = path;
  return beside.replace_filename(path.stem().string() + ".interrupted" + path.extension().string())
      .string();
}

/// What was measured, of how many repeats.
Table measurements(const Calibration& calibration) {
  constexpr Field what = fields::text_field("what", "what", "What was measured."),
                  middle = fields::text_field("median", "median", "The median of the repeats."),
                  low = fields::text_field("low", "p10", "Their first decile."),
                  high = fields::text_field("high", "p90", "Their ninth decile."),
                  repeats = fields::count_field("repeats", "repeats", "How often it was measured."),
                  outliers =
                      fields::count_field("outliers", "outliers", "Repeats far from the others.");
  Table table{{what, middle.with(fields::most), low, high, repeats.with(fields::little),
               outliers.with(fields::little)}};
  const auto add = [&](const std::string& name, const Spread& time) {
    table.add({name, to_string(time.median), to_string(time.low), to_string(time.high),
               time.repeats, time.outliers});
  };
  for (const MeasuredWork& task : calibration.tasks)
    add(task.gemm ? fmt::format("{} {} x {} x {}{}", name_of(task.operation), task.gemm->m,
                                task.gemm->n, task.gemm->k, task.aside ? ", aside" : "")
                  : fmt::format("{} of {}{}", name_of(task.operation), to_string(task.traffic),
                                task.aside ? ", aside" : ""),
        task.time);
  for (const AllReduceCost& cost : calibration.all_reduce)
    add(fmt::format("all-reduce of {}", to_string(cost.size)), cost.time);
  for (const MeasuredCollective& each : calibration.collectives)
    add(fmt::format("{} of {} among {}", name_of(each.operation), to_string(each.size), each.ranks),
        each.time);
  return table;
}

Page page_of(const Calibration& calibration) {
  Page page;
  page.add(Paragraph{fmt::format("{}; {}\n{} ranks, {}; {}", calibration.machine, calibration.cpu,
                                 calibration.ranks, calibration.link, calibration.versions)});
  page.add(measurements(calibration));
  std::string rest =
      fmt::format("host time: issuing a collective {}, firing a hook {}\n",
                  to_string(calibration.launch.collective), to_string(calibration.launch.hook));
  if (calibration.backward_beside_hook != 1)
    rest += fmt::format(
        "backward, while a comm hook computes beside it, takes {:.3f} times as "
        "long\n",
        calibration.backward_beside_hook);
  for (const MeasuredInterference& each : calibration.interference)
    rest += fmt::format(
        "beside all-reduces of {}{}: computation takes {:.3f} times as long{}, "
        "communication {:.3f} times\n",
        to_string(each.size),
        each.channels > 0 ? fmt::format(" on {} channels", each.channels) : "",
        each.compute_slowdown,
        each.memory_slowdown
            ? fmt::format(", memory-bound kernels {:.3f} times", *each.memory_slowdown)
            : "",
        each.communication_slowdown);
  page.add(Paragraph{rest});
  return page;
}

struct CalibrateRequest {
  CommonOptions common;
  JobFlags job;
  std::string output, interrupted;
  MeasureOptions options;
  std::optional<std::string> collectives;  ///< by name; none: those of the scenario's steps
  std::string agreement;                   ///< what all ranks must have been asked for alike
};

/// What the flags ask for; nothing if they ask for help.
std::optional<CalibrateRequest> calibrate_request(const std::vector<std::string>& arguments) {
  CalibrateRequest request;
  auto& [common, job, output, interrupted, options, collectives, agreement] = request;
  std::string repeats = "15", smallest, largest, named;
  boost::program_options::options_description own;
  using boost::program_options::value;
  own.add_options()("output,o", value(&output)->value_name("FILE"), "the calibration file");
  job.add_to(own);
  own.add_options()("repeats", value(&repeats)->value_name("N"),
                    "of each measurement (default: 15)")(
      "smallest", value(&smallest)->value_name("SIZE"),
      "smallest all-reduce (default: 4 KiB, on GPUs 1 KiB)")(
      "largest", value(&largest)->value_name("SIZE"),
      "largest all-reduce (default: 64 MiB, on GPUs 1 GiB)")(
      "collectives", value(&named)->value_name("LIST"),
      "all-gather, reduce-scatter, broadcast, all-to-all, send/receive, all-reduce (of groups), "
      "all "
      "or none: from --smallest to --largest, among all ranks and among groups; each takes a few "
      "seconds more (default: those of the scenario's steps, up to twice their largest size)");
  if (!parse(arguments, calibrate_usage, Flag::set | Flag::tables, own, common))
    return std::nullopt;
  if (output.empty() || common.files.size() > 1)
    throw InputError(
        "calibrate needs -o FILE, and at most one scenario: ddpsim calibrate --ranks 2 "
        "-o machine.yaml");
  options.repeats = count_of("--repeats", repeats, 1, 10000);
  const bool gpu = job.backend == "nccl";
  if (smallest.empty()) smallest = gpu ? "1 KiB" : "4 KiB";
  if (largest.empty()) largest = gpu ? "1 GiB" : "64 MiB";
  options.smallest = sizes_of("--smallest", smallest).front();
  options.largest = sizes_of("--largest", largest).front();
  if (options.largest < options.smallest || options.smallest < Bytes{4} ||
      options.largest > Bytes{std::int64_t{4} << 30})
    throw InputError(
        fmt::format("--smallest {} --largest {}: expected sizes that grow, from 4 B to 4 GiB",
                    smallest, largest));
  if (!named.empty()) {
    if (gpu)
      throw InputError("--collectives: on GPUs all-reduces alone are measured; leave it out");
    collectives = named;
    collectives_named("--collectives", named, 2, options.largest);
  }
  interrupted = interrupted_place(output);
  agreement = fmt::format("calibrate {} {} {} {}", repeats, smallest, largest, named);
  return request;
}

/// Every strategy that keeps whole parameters, and of the others those that the scenario compares;
/// the first one does not communicate.
std::vector<Training> trainings_of(const Scenario& scenario) {
  std::vector<Training> trainings{scenario.training};
  trainings.front().strategy = Strategy::none;
  for (const Strategy strategy : all_strategies) {
    const bool replicates =
        std::ranges::find(replicating_strategies, strategy) != replicating_strategies.end();
    const bool is_compared =
        std::ranges::find(scenario.compare, strategy) != scenario.compare.end() ||
        scenario.training.strategy == strategy;
    if (strategy == Strategy::none || (!replicates && !is_compared)) continue;
    trainings.push_back(scenario.training);
    trainings.back().strategy = strategy;
  }
  return trainings;
}

/// `left_before`: of the processors, before the ranks began.
Calibration measured(Backend& backend, const Scenario& scenario,
                     const std::vector<program::Job>& jobs, const CalibrateRequest& request,
                     const JobOptions& job, double left_before) {
  Progress progress(request.common.quiet || backend.rank() != 0, Progress::InLogs::yes);
  Watch watch;
  watch.progress = [&](const std::string& what, double done) { progress.show(what, done); };
  watch.stop = [] { return Interruptible::asked(); };
  const Steal steal;
  backend.load(scenario.workload, scenario.optimizer);
  Calibration calibration =
      measure_machine(backend, scenario.workload, jobs, request.options, watch);
  calibration.backend = request.job.backend;
  const double stolen = largest_of_ranks(backend, steal.share());
  // Once more, for what began meanwhile; the other ranks have nothing left to do.
  const double left = backend.rank() == 0 ? std::min(left_before, left_by_others(job)) : 1;
  calibration.doubts = machine_doubts(stolen, left);
  if (std::ranges::any_of(calibration.factors, [](const OperationFactor& factor) {
        return factor.over_medians >= OperationFactor::most;
      }))
    calibration.doubts.push_back(
        fmt::format("kernels of the median step took {:.0f} times their medians and more together, "
                    "for the machine stood still meanwhile: measure again",
                    OperationFactor::most));
  if (std::string doubt = all_reduce_doubt(calibration.all_reduce); !doubt.empty())
    calibration.doubts.insert(calibration.doubts.begin(), std::move(doubt));
  return calibration;
}

/// What rank 0 says in the end.
int report(const CalibrateRequest& request, const Calibration& calibration) {
  const std::string &output = request.output, &interrupted = request.interrupted;
  Pages pages(request.common, {output});
  if (pages.wanted()) pages.add(page_of(calibration));
  Outputs outputs;
  pages.add_to(outputs);
  outputs.add_measured(calibration.complete ? output : interrupted, calibration_yaml(calibration));
  outputs.commit();
  if (!request.common.quiet)
    for (const std::string& doubt : calibration.doubts)
      add_notes({fmt::format("the calibration is doubtful: {}", doubt)});
  if (calibration.complete) return exit_done;
  note("ddpsim: interrupted; {} holds what had been measured{}", interrupted,
       interrupted == output || !std::filesystem::exists(output)
           ? ""
           : fmt::format(", and {} is as it was", output));
  return exit_failure;
}

}  // namespace

int calibrate_command(const std::vector<std::string>& arguments) {
  const std::optional<CalibrateRequest> asked = calibrate_request(arguments);
  if (!asked) return exit_done;
  CalibrateRequest request = *asked;
  const CommonOptions& common = request.common;
  Scenario scenario =
      common.files.empty() ? standard_set() : read_scenario(common.files[0], common.set);
  scenario.cluster.device.synchronous = request.job.synchronous();
  scenario.training.join.reset();  // all ranks are measured
  JobOptions job_options = request.job.options(scenario.cluster.ranks());
  scenario.cluster = side_by_side(scenario.cluster, link_ranks(job_options));
  const std::vector<program::Job> jobs = jobs_of(scenario, trainings_of(scenario));
  job_options.agreement = agreement_of(scenario.workload, jobs, request.agreement);
  const int ranks = scenario.cluster.ranks();
  if (request.collectives)
    request.options.collectives =
        collectives_named("--collectives", *request.collectives, ranks, request.options.largest);
  else if (request.job.synchronous())
    request.options.collectives = collectives_of(jobs, ranks, request.options.largest);
  if (speaks(job_options)) {
    const bool elsewhere = request.interrupted != request.output;
    constexpr std::int64_t room = 256 * 1024;  // of a thousand entries
    check_results(common, {{"-o", request.output, room},
                           {"if interrupted,", elsewhere ? request.interrupted : ""}});
    if (!common.quiet)
      if (const std::string left = allocation_note(request.job, job_options, "calibrate");
          !left.empty())
        add_notes({left});
  }
  const double left_before = left_by_others(job_options);
  return run_job(job_options, [&](Backend& backend) {
    const Interruptible interruptible;
    const Calibration calibration =
        measured(backend, scenario, jobs, request, job_options, left_before);
    return backend.rank() == 0 ? report(request, calibration) : exit_done;
  });
}

}  // namespace ddpsim
