#include "backend/measure/measure_kernels.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <stdexcept>

#include "backend/measure/measure_step.hpp"
#include "backend/measure/steal.hpp"
#include "model/cost/calibration_fit.hpp"
#include "model/schedule/variants.hpp"

namespace ddpsim {
namespace {

/// Time that the host and its kernels compute, by all ranks: what one of them owns says nothing of
/// which is slow.
Duration computing(const Schedule& schedule, const std::vector<TaskTimes>& times) {
  Duration sum{};
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Task& task = schedule.tasks[i];
    const bool waits = task.operation == Operation::wait || task.operation == Operation::meet ||
                       task.operation == Operation::pause;
    if (!is_collective(task.operation) && !waits && task.owner == nobody)
      sum += times[i].end - times[i].start;
  }
  return sum;
}

/// [work of the schedule] as a calibration knows it.
std::vector<std::optional<Work>> measured_works(const Schedule& schedule) {
  std::vector<std::optional<Work>> works;
  for (const Work& work : schedule.works) works.push_back(measured_as(work));
  return works;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

MeasureKernels::MeasureKernels(Backend& backend, const std::vector<Schedule>& steps,
                               const JobOf& job_of)
    : backend_(backend), job_of_(job_of) {
  for (const Schedule& step : steps) {
    const bool hooked = backend.synchronous() && computes_aside(step);
    (hooked ? hooked_ : plain_)
        .runs.push_back({&step, RunnableStep(without_communication(step), job_of)});
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
    if (!each.step->hook_state.empty() && each.timelines.empty())
      each.executed =
          RunnableStep(with_pauses(*each.step,
                                   [&](const Work& work) {
                                     return law ? law->time(0, work.payload) : Duration::zero();
                                   }),
                       job_of_);
  RunOptions by_processor;
  by_processor.by_processor = true;
  run(hooked_, by_processor, counts);
}

void MeasureKernels::run(Measured& measured, const RunOptions& how, bool counts) {
  for (Run& each : measured.runs) {
    const Schedule& step = each.executed.schedule();
    Timeline timeline =
        undisturbed(backend_, [&] { return measure_step(backend_, each.executed, how); });
    if (!counts) continue;
    const auto works = measured_works(step);
    for (const auto& times : timeline.ranks)
      for (std::size_t i = 0; i < times.size(); ++i)
        if (const auto& work = works[step.tasks[i].work]) {
          const std::uint32_t number = measured.works.add(*work);
          if (number == measured.samples.size()) measured.samples.emplace_back();
          measured.samples[number].push_back(times[i].end - times[i].start);
        }
    each.timelines.push_back(std::move(timeline));
  }
}

double MeasureKernels::computing_first(const Measured& measured) {
  std::vector<double> all;
  const Run& first = measured.runs.front();
  for (const Timeline& timeline : first.timelines)
    for (const auto& times : timeline.ranks)
      all.push_back(in_seconds(computing(first.executed.schedule(), times)));
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
    const auto works = measured_works(run.executed.schedule());
    for (const Timeline& timeline : run.timelines)
      for (const auto& times : timeline.ranks) {
        std::map<Operation, std::pair<double, double>> sums;  // as measured, of medians
        for (std::size_t i = 0; i < times.size(); ++i)
          if (const auto& work = works[run.executed.schedule().tasks[i].work]) {
            auto& [taken, usual] = sums[work->operation];
            taken += in_seconds(times[i].end - times[i].start);
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

double MeasureKernels::backward_beside(const std::optional<std::string>& hook_state) const {
  std::unordered_map<Work, std::pair<double, int>, WorkHash> alone;  // sum and number
  // Calls for each backward kernel of a run, in the micro-batches that have a hook's tasks or in
  // all.
  const auto each_backward = [](const Run& run, bool only_hooked, auto call) {
    std::set<int> hooked;  // micro-batches
    for (const Task& task : run.executed.schedule().tasks)
      if (task.step != nobody) hooked.insert(task.micro_batch);
    const auto works = measured_works(run.executed.schedule());
    for (const Timeline& timeline : run.timelines)
      for (const auto& times : timeline.ranks)
        for (std::size_t i = 0; i < times.size(); ++i) {
          const Task& task = run.executed.schedule().tasks[i];
          if (task.operation != Operation::backward || !works[task.work]) continue;
          if (only_hooked && hooked.count(task.micro_batch) == 0) continue;
          call(*works[task.work], in_seconds(times[i].end - times[i].start));
        }
  };
  if (hooked_.runs.empty()) return 1;
  each_backward(hooked_.runs.front(), false, [&](const Work& work, double time) {
    alone[work].first += time;
    ++alone[work].second;
  });
  double beside = 0, expected = 0;
  for (const Run& run : std::span(hooked_.runs).subspan(1)) {
    if (hook_state && run.step->hook_state != *hook_state) continue;
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
    for (const Timeline& timeline : run.timelines) {
      double most = 0, sum = 0;
      for (const auto& times : timeline.ranks) {
        const double mine = in_seconds(computing(run.executed.schedule(), times));
        most = std::max(most, mine);
        sum += mine;
      }
      if (sum > 0) slowest.push_back(most * static_cast<double>(timeline.ranks.size()) / sum);
    }
  return slowest.empty() ? 1 : std::max(1.0, median(std::move(slowest)));
}

}  // namespace ddpsim
