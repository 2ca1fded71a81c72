#include "tools/study/validation.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "backend/measure/measure_step.hpp"
#include "backend/measure/steal.hpp"
#include "model/base/index.hpp"
#include "model/program/fingerprint.hpp"
#include "model/program/variants.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "sim/predict/predict.hpp"
#include "tools/study/expected_gradients.hpp"
#include "tools/study/names.hpp"
#include "tools/study/step_jobs.hpp"

namespace ddpsim {
namespace {

template <typename Value>
Value median(std::vector<Value> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Field by field.
StepMetrics median_of(const std::vector<StepMetrics>& samples) {
  StepMetrics result = samples.front();
  const auto field = [&](auto get) {
    std::vector<std::remove_cvref_t<decltype(get(result))>> values;
    for (const StepMetrics& sample : samples) values.push_back(get(sample));
    return median(std::move(values));
  };
  result.step = field([](const StepMetrics& m) { return m.step; });
  result.forward = field([](const StepMetrics& m) { return m.forward; });
  result.backward = field([](const StepMetrics& m) { return m.backward; });
  result.optimizer = field([](const StepMetrics& m) { return m.optimizer; });
  result.communication = field([](const StepMetrics& m) { return m.communication; });
  result.bound = field([](const StepMetrics& m) { return m.bound; });
  for (std::size_t b = 0; b < result.buckets.size(); ++b) {
    BucketTimes& bucket = result.buckets[b];
    bucket.ready = field([&](const StepMetrics& m) { return m.buckets[b].ready; });
    bucket.start = field([&](const StepMetrics& m) { return m.buckets[b].start; });
    bucket.end = field([&](const StepMetrics& m) { return m.buckets[b].end; });
    bucket.exposed = field([&](const StepMetrics& m) { return m.buckets[b].exposed; });
  }
  return result;
}

/// All timelines of one strategy become its figures; the one in the middle is kept.
void summarise(std::vector<JobTimeline> timelines, const Scenario& scenario, ValidatedStep& step) {
  Step& measured = step.measured;
  const program::Job& job = measured.job();
  std::vector<StepMetrics> samples;
  std::vector<Duration> lengths;
  Waits waits;
  const std::vector<int> typical = typical_ranks(
      measured.training, scenario.cluster, static_cast<int>(timelines.front().class_of.size()));
  // To tell what bounds a step, as the prediction does.
  std::vector<TaskDetail> details = *step.predicted.rank().details;
  details.resize(job.works.size());
  for (JobTimeline& timeline : timelines) {
    timeline.details = {details};
    timeline.details_of.assign(timeline.classes.size(), 0);
    for (const int rank : typical) {
      samples.push_back(measure(job, timeline, at(rank)));
      if (rank != typical.front() || scenario.cluster.exceptions.empty()) continue;
      waits.add(names_of_real_ranks(scenario.cluster, timeline.class_of.size()),
                waits_for_ranks(job, timeline, samples.back(), at(rank)));
    }
    lengths.push_back(timeline.end.time_since_epoch());
  }
  step.measured_late = waits.latest(timelines.size());
  measured.metrics = median_of(samples);
  step.spread = spread_of(lengths);
  std::sort(timelines.begin(), timelines.end(),
            [](const JobTimeline& a, const JobTimeline& b) { return a.end < b.end; });
  measured.times = std::move(timelines[timelines.size() / 2]);
  for (std::size_t rank = 0; rank < measured.times.class_of.size(); ++rank)
    measured.ranks.push_back(rank);
  step.measured_parts = break_down(job, measured.times, at(typical.front()));
}

/// Those of the steps whose kernels are measured: such as compute the same, for all that caps
/// change, once.
std::vector<std::size_t> to_measure(const std::vector<Training>& trainings,
                                    const std::vector<program::Job>& jobs) {
  const auto operations = [](const program::Job& of) {
    std::set<Operation> all;
    for (const program::Task& task : of.programs.front().tasks) all.insert(operation_of(of, task));
    return all;
  };
  std::vector<std::size_t> measured;
  for (std::size_t s = 0; s < jobs.size(); ++s)
    if (std::ranges::none_of(measured, [&](std::size_t other) {
          return trainings[other].strategy == trainings[s].strategy &&
                 jobs[other].hook == jobs[s].hook && operations(jobs[other]) == operations(jobs[s]);
        }))
      measured.push_back(s);
  return measured;
}

/// As the calibration prices them, with so many ranks. Beside a comm hook, backward takes as much
/// longer as it did beside that one; a calibration holds one figure for all of its hooks.
StepModel predict_all(Validation& validation, const std::vector<Training>& trainings,
                      const std::vector<program::Job>& jobs, int ranks,
                      const std::optional<MeasureKernels>& kernels) {
  validation.scenario.cluster =
      calibrated_cluster(validation.calibration, validation.scenario.cluster, ranks);
  StepModel model = model_of(validation.scenario);
  for (std::size_t s = 0; s < trainings.size(); ++s) {
    ValidatedStep& step = validation.steps[s];
    if (kernels) model.costs.backward_beside_hook = kernels->backward_beside(jobs[s].hook);
    step.predicted = predict(model, trainings[s]);
    step.predicted_parts =
        break_down(step.predicted.job(), step.predicted.times, step.predicted.ranks.front());
    step.predicted_late = late_rank(validation.scenario, step.predicted);
  }
  return model;
}

/// Since then, by this rank's clock.
Duration since(std::chrono::steady_clock::time_point then) {
  return std::chrono::steady_clock::now() - then;
}

/// How often every strategy takes a step: some to warm up, then those that count; fewer of both
/// where the time is over. All ranks go through the same. Communicates.
class StepRounds {
 public:
  StepRounds(Backend& backend, const ValidateOptions& options,
             std::chrono::steady_clock::time_point begun)
      : backend_(backend), options_(options), begun_(begun), warm_up_(options.warm_up) {
    if (options.within) for_steps_ = *options.within - since(begun);
  }

  bool more() const { return measured_ < steps_; }
  bool count() const { return number_ >= warm_up_; }
  int number() const { return number_; }
  int most() const { return warm_up_ + steps_; }
  int measured() const { return measured_; }

  void next() {
    if (count()) ++measured_;
    ++number_;
    if (!options_.within) return;
    // A fifth of what is left for steps is for those that warm up.
    const bool warm = number_ >= options_.fewest_warm_up &&
                      since(begun_) > *options_.within - scaled(for_steps_, 0.8);
    if (number_ < warm_up_ && any_rank(backend_, warm)) warm_up_ = number_;
    const bool over = measured_ >= options_.fewest_steps && since(begun_) > *options_.within;
    if (any_rank(backend_, over)) steps_ = measured_;
  }

 private:
  Backend& backend_;
  const ValidateOptions& options_;
  std::chrono::steady_clock::time_point begun_;
  Duration for_steps_{};
  int warm_up_, steps_ = options_.steps;
  int number_ = 0, measured_ = 0;
};

}  // namespace

std::vector<Training> trainings_to_validate(const Scenario& scenario,
                                            const std::vector<Bytes>& caps) {
  if (scenario.training.pipeline)
    throw InputError(fmt::format(
        "{}: training.input: real ranks load no data: write ready, or take it out", scenario.file));
  check_exceptions(scenario);
  std::vector<Training> trainings;
  const auto add = [&](Strategy strategy) -> Training& {
    trainings.push_back(scenario.training);
    trainings.back().strategy = strategy;
    return trainings.back();
  };
  add(Strategy::none);
  for (const Strategy strategy : scenario.compare) {
    if (strategy == Strategy::none) continue;
    if (strategy != Strategy::bucketed || caps.empty()) {
      add(strategy);
      continue;
    }
    for (const Bytes cap : caps) {
      Training& training = add(strategy);
      training.give_cap(cap);
      training.bucket_caps.clear();
      training.buckets.clear();
      training.parameter_groups = 0;
    }
  }
  return trainings;
}

CalibratedCluster side_by_side(CalibratedCluster cluster, int ranks) {
  cluster.nodes = 1;
  cluster.ranks_per_node = ranks;
  if (cluster.intra_node.bandwidth.bytes_per_second <= 0) cluster.intra_node = cluster.inter_node;
  return cluster;
}

CalibratedCluster calibrated_cluster(const Calibration& calibration, const Cluster& given,
                                     int ranks) {
  CalibratedCluster cluster = side_by_side(given, ranks);
  cluster.device.name = calibration.cpu;
  cluster.device.synchronous = calibration.synchronous;
  cluster.collectives = CollectiveModel::automatic;
  cluster.interference.reset();
  cluster.launch = calibration.launch;
  cluster.calibration = calibration;
  cluster.skew = 0;
  cluster.jitter.reset();
  if (!calibration.all_reduce.empty()) cluster.intra_node.name.clear();  // ranks use what was there
  return cluster;
}

void check_optimizer(const Scenario& scenario) {
  if (scenario.workload.clip_gradients && !scenario.workload.optimizer)
    throw std::invalid_argument(
        "no backend clips gradients: take workload.clip_gradients out, or give the optimizer's "
        "time");
  if (!runs_on_ranks(scenario.optimizer) && !scenario.workload.optimizer)
    throw std::invalid_argument(
        fmt::format("no backend computes {}'s update: choose another optimizer, or give its time",
                    name_of(scenario.optimizer)));
}

Validation validate(Backend& backend, Scenario scenario, const std::vector<Training>& trainings,
                    const std::vector<program::Job>& jobs, const ValidateOptions& options,
                    const Watch& watch) {
  Validation validation;
  const auto begun = std::chrono::steady_clock::now();
  const Steal steal;
  validation.scenario = std::move(scenario);
  const Workload& workload = validation.scenario.workload;
  check_optimizer(validation.scenario);
  if (backend.rank() == 0 && watch.progress) watch.progress("gradients without communication", 0);
  backend.load(workload, validation.scenario.optimizer);

  for (std::size_t s = 0; s < trainings.size(); ++s) {
    ValidatedStep& step = validation.steps.emplace_back();
    step.measured.training = trainings[s];
    step.measured.planned = std::make_shared<const PlannedStep>(jobs[s]);
    step.fingerprint = program::fingerprint(jobs[s]);
  }
  // First of all: what cannot be run is said before anything is measured.
  const GradientReference reference = reference_gradients(
      backend, workload, without_updates(jobs.front()), trainings.front().micro_batches);
  for (std::size_t s = 0; s < jobs.size(); ++s) {
    if (trainings[s].strategy == Strategy::none) continue;
    if (backend.rank() == 0 && watch.progress)
      watch.progress(fmt::format("gradients, {} of {}", s + 1, jobs.size()), 0);
    backend.run(without_updates(jobs[s]));
    ExpectedGradients expected = expected_gradients(trainings[s], backend.ranks());
    expected.in_parts = &jobs[s];
    validation.steps[s].gradients = check_gradients(backend, workload, reference, expected);
  }

  std::vector<program::Job> alone;
  if (options.calibration) {
    validation.calibration = *options.calibration;
  } else {
    std::vector<Training> measured;
    for (const std::size_t s : to_measure(trainings, jobs)) measured.push_back(trainings[s]);
    alone = jobs_of(validation.scenario, measured, true);
    MeasureOptions measure = options.measure;
    measure.kernels_follow = true;
    if (measure.within) measure.within = *measure.within - since(begun);
    validation.calibration = measure_machine(backend, workload, alone, measure, watch);
  }
  std::optional<MeasureKernels> kernels;
  if (!alone.empty()) kernels.emplace(backend, alone);

  const std::vector<RunOptions> paces = paces_of(validation.scenario, jobs, backend.rank());
  std::vector<std::vector<JobTimeline>> timelines(jobs.size());
  std::vector<std::optional<Sent>> sent(jobs.size());
  std::vector<double> overflows(jobs.size(), 0);
  const int turns = (options.measure.repeats + options.steps - 1) / options.steps;
  StepRounds rounds(backend, options, begun);
  for (; rounds.more(); rounds.next()) {
    for (int turn = 0; kernels && turn < (rounds.count() ? turns : 1); ++turn) {
      kernels->run_plain(rounds.count());
      kernels->run_hooked(validation.calibration.all_reduce, rounds.count());
    }
    for (std::size_t s = 0; s < jobs.size(); ++s) {
      if (backend.rank() == 0 && watch.progress)
        watch.progress(fmt::format("steps, {} of {}", rounds.number() + 1, rounds.most()),
                       static_cast<double>(rounds.number()) / rounds.most());
      JobTimeline timeline =
          undisturbed(backend, [&] { return measure_step(backend, jobs[s], paces[s], &sent[s]); });
      if (sent[s]) overflows[s] += static_cast<double>(sent[s]->overflows);
      if (rounds.count()) timelines[s].push_back(std::move(timeline));
    }
  }
  if (rounds.measured() < options.steps)
    validation.cut_short = {rounds.measured(), options.steps, *options.within};
  if (kernels) kernels->put_into(validation.calibration);
  const StepModel model = predict_all(validation, trainings, jobs, backend.link_ranks(), kernels);
  for (std::size_t s = 0; s < jobs.size(); ++s)
    summarise(std::move(timelines[s]), validation.scenario, validation.steps[s]);
  backend.sum(overflows);
  for (std::size_t s = 0; s < jobs.size(); ++s) {
    validation.steps[s].overflows = static_cast<std::int64_t>(overflows[s]);
    if (!sent[s]) continue;  // what the job says, then
    validation.steps[s].measured.metrics.collectives = sent[s]->collectives;
    StepMetrics& measured = validation.steps[s].measured.metrics;
    measured.wire += sent[s]->payload - measured.payload;  // by how much it is not the job's
    measured.payload = sent[s]->payload;
  }
  validation.stolen = largest_of_ranks(backend, steal.share());
  return validation;
}

}  // namespace ddpsim
