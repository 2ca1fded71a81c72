#include "backend/measure/measure_kernels.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <stdexcept>

#include "backend/measure/measure_step.hpp"
#include "backend/measure/steal.hpp"
#include "model/cost/calibration_fit.hpp"
#include "model/program/variants.hpp"

namespace ddpsim {
namespace {

/// Calls for each task of each rank of a run, with what was measured of it.
template <typename Call>
void for_each_task(const program::Job& job, const JobTimeline& timeline, Call call) {
  for (std::size_t rank = 0; rank < timeline.class_of.size(); ++rank) {
    const RankOfJob of(job, timeline, rank);
    for (std::size_t i = 0; i < of.times.size(); ++i)
      call(of.program.tasks[i], of.times[i].end - of.times[i].start);
  }
}

/// [rank] Time that the host and its kernels compute, by all ranks: what one of them owns says
/// nothing of which is slow.
std::vector<Duration> computing(const program::Job& job, const JobTimeline& timeline) {
  const std::vector<bool> of_all = program::deeds_of_all(job);
  std::vector<Duration> sums(timeline.class_of.size());
  for (std::size_t rank = 0; rank < sums.size(); ++rank) {
    const RankOfJob of(job, timeline, rank);
    for (std::size_t i = 0; i < of.times.size(); ++i) {
      const Operation operation = job.works[of.program.tasks[i].work].operation;
      const bool waits = operation == Operation::wait || operation == Operation::meet ||
                         operation == Operation::pause;
      if (!is_collective(operation) && !waits && of_all[of.program.tasks[i].deed])
        sums[rank] += of.times[i].end - of.times[i].start;
    }
  }
  return sums;
}

/// Does a comm hook compute beside the backward pass: behind a collective that is issued there?
bool computes_aside(const program::Job& job) {
  return std::ranges::any_of(job.works, [](const Work& work) {
    return work.aside && work.operation != Operation::synchronize;
  });
}

/// [work of the job] as a calibration knows it.
std::vector<std::optional<Work>> measured_works(const program::Job& job) {
  std::vector<std::optional<Work>> works;
  for (const Work& work : job.works) works.push_back(measured_as(work));
  return works;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

MeasureKernels::MeasureKernels(Backend& backend, const std::vector<program::Job>& steps)
    : backend_(backend) {
  for (const program::Job& step : steps) {
    const bool hooked = backend.synchronous() && computes_aside(step);
    (hooked ? hooked_ : plain_).runs.push_back({&step, without_communication(step)});
  }
  if (plain_.runs.empty() || plain_.runs.front().step != &steps.front())
    throw std::invalid_argument("the first step must not communicate");
  if (has_hooked())  // by the same clock
    hooked_.runs.insert(hooked_.runs.begin(), plain_.runs.front());
}

void MeasureKernels::run_plain(bool counts) {
  run(plain_, {}, counts);
}

void MeasureKernels::run_hooked(const std::vector<AllReduceCost>& all_reduces, bool counts) {
  const auto law = fit_all_reduce(all_reduces);
  for (Run& each : hooked_.runs)
    if (!each.step->hook.empty() && each.timelines.empty())
      each.executed = with_pauses(*each.step, [&](const Work& work) {
        return law ? law->time(0, work.payload) : Duration::zero();
      });
  RunOptions by_processor;
  by_processor.by_processor = true;
  run(hooked_, by_processor, counts);
}

void MeasureKernels::run(Measured& measured, const RunOptions& how, bool counts) {
  for (Run& each : measured.runs) {
    const program::Job& step = each.executed;
    JobTimeline timeline =
        undisturbed(backend_, [&] { return measure_step(backend_, each.executed, how); });
    if (!counts) continue;
    const auto works = measured_works(step);
    for_each_task(step, timeline, [&](const program::Task& task, Duration time) {
      const std::optional<Work>& work = works[task.work];
      if (!work) return;
      const std::uint32_t number = measured.works.add(*work);
      if (number == measured.samples.size()) measured.samples.emplace_back();
      measured.samples[number].push_back(time);
    });
    each.timelines.push_back(std::move(timeline));
  }
}

double MeasureKernels::computing_first(const Measured& measured) {
  std::vector<double> all;
  const Run& first = measured.runs.front();
  for (const JobTimeline& timeline : first.timelines)
    for (const Duration each : computing(first.executed, timeline)) all.push_back(in_seconds(each));
  return all.empty() ? 0 : median(std::move(all));
}

void MeasureKernels::put_into(Calibration& calibration) const {
  calibration.tasks.clear();
  calibration.factors.clear();
  calibration.slowest_rank = slowest_rank();
  Medians medians;
  add(plain_, 1, medians, calibration);
  for (const auto& [operation, factor] : over_medians(plain_, medians))
    calibration.factors.push_back({operation, factor});
  calibration.backward_beside_hook = 1;
  if (hooked_.samples.empty()) return;
  const double by_processor = computing_first(hooked_);
  add(hooked_, by_processor > 0 ? computing_first(plain_) / by_processor : 1, medians, calibration);
  for (const auto& [operation, factor] : over_medians(hooked_, medians)) {
    const auto plain =
        std::find_if(calibration.factors.begin(), calibration.factors.end(),
                     [sought = operation](const auto& each) { return each.operation == sought; });
    if (plain == calibration.factors.end()) calibration.factors.push_back({operation, factor});
  }
  calibration.backward_beside_hook = backward_beside({});
}

void MeasureKernels::add(const Measured& measured, double factor, Medians& medians,
                         Calibration& calibration) {
  for (std::uint32_t w = 0; w < measured.works.size(); ++w) {
    const Work& work = measured.works[w];
    Spread spread = spread_of(measured.samples[w]);
    if (!medians.emplace(work, in_seconds(spread.median)).second) continue;
    for (Duration* time : {&spread.median, &spread.low, &spread.high})
      *time = scaled(*time, factor);
    MeasuredWork& entry = calibration.tasks.emplace_back();
    static_cast<Work&>(entry) = work;
    entry.time = spread;
  }
}

/// What an operation's tasks take together over their medians added up, in the median step.
std::map<Operation, double> MeasureKernels::over_medians(const Measured& measured,
                                                         const Medians& medians) {
  std::map<Operation, std::vector<double>> ratios;
  for (const Run& run : measured.runs) {
    const auto works = measured_works(run.executed);
    for (const JobTimeline& timeline : run.timelines)
      for (std::size_t rank = 0; rank < timeline.class_of.size(); ++rank) {
        const RankOfJob of(run.executed, timeline, rank);
        std::map<Operation, std::pair<double, double>> sums;  // as measured, of medians
        for (std::size_t i = 0; i < of.times.size(); ++i)
          if (const auto& work = works[of.program.tasks[i].work]) {
            auto& [taken, usual] = sums[work->operation];
            taken += in_seconds(of.times[i].end - of.times[i].start);
            usual += medians.at(*work);
          }
        for (const auto& [operation, sum] : sums)
          if (sum.second > 0) ratios[operation].push_back(sum.first / sum.second);
      }
  }
  std::map<Operation, double> factors;
  for (auto& [operation, values] : ratios)
    factors[operation] =
        std::clamp(median(std::move(values)), OperationFactor::least, OperationFactor::most);
  return factors;
}

double MeasureKernels::backward_beside(const std::optional<std::string>& hook) const {
  std::unordered_map<Work, std::pair<double, int>, WorkHash> alone;  // sum and number
  // Calls for each backward kernel of a run, in the micro-batches that have a hook's tasks or in
  // all.
  const auto each_backward = [](const Run& run, bool only_hooked, auto call) {
    std::set<int> hooked;  // micro-batches
    for (const program::Program& program : run.executed.programs)
      for (const program::Task& task : program.tasks)
        if (run.executed.deed_of(task).origin.label != 0) hooked.insert(task.micro_batch);
    const auto works = measured_works(run.executed);
    for (const JobTimeline& timeline : run.timelines)
      for_each_task(run.executed, timeline, [&](const program::Task& task, Duration time) {
        const bool is_backward = run.executed.works[task.work].operation == Operation::backward;
        if (!is_backward || !works[task.work]) return;
        if (only_hooked && !hooked.contains(task.micro_batch)) return;
        call(*works[task.work], in_seconds(time));
      });
  };
  if (hooked_.runs.empty()) return 1;
  each_backward(hooked_.runs.front(), false, [&](const Work& work, double time) {
    alone[work].first += time;
    ++alone[work].second;
  });
  double beside = 0, expected = 0;
  for (const Run& run : std::span(hooked_.runs).subspan(1)) {
    if (hook && run.step->hook != *hook) continue;
    each_backward(run, true, [&](const Work& work, double time) {
      const auto& [sum, count] = alone.at(work);
      beside += time;
      expected += sum / count;
    });
  }
  return expected > 0 ? std::max(1.0, beside / expected) : 1;
}

double MeasureKernels::slowest_rank() const {
  std::vector<double> slowest;
  for (const Run& run : plain_.runs)
    for (const JobTimeline& timeline : run.timelines) {
      double most = 0, sum = 0;
      for (const Duration each : computing(run.executed, timeline)) {
        most = std::max(most, in_seconds(each));
        sum += in_seconds(each);
      }
      if (sum > 0) slowest.push_back(most * static_cast<double>(timeline.class_of.size()) / sum);
    }
  return slowest.empty() ? 1 : std::max(1.0, median(std::move(slowest)));
}

}  // namespace ddpsim
