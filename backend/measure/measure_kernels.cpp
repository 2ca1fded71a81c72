#include "backend/measure/measure_kernels.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <stdexcept>
#include <variant>

#include "backend/measure/measure_step.hpp"
#include "backend/measure/steal.hpp"
#include "model/cost/calibration_fit.hpp"
#include "model/schedule/variants.hpp"

namespace ddpsim {
namespace {

/// Calls `each` with every rank that was measured.
template <typename Each>
void each_rank(const program::Job& job, const JobTimeline& timeline, Each each) {
  for (std::size_t rank = 0; rank < timeline.classes.size(); ++rank)
    each(RankOfJob(job, timeline, rank));
}

/// [deed] Do all ranks do it?
std::vector<bool> done_by_all(const program::Job& job) {
  std::vector<std::size_t> programs(job.known_deeds() + job.own.deeds.size(), 0);
  for (const program::Program& program : job.programs) {
    std::vector<bool> seen(programs.size(), false);
    for (const program::Task& task : program.tasks)
      if (!seen[task.deed]) {
        seen[task.deed] = true;
        ++programs[task.deed];
      }
  }
  std::vector<bool> by_all;
  for (const std::size_t count : programs) by_all.push_back(count == job.programs.size());
  return by_all;
}

/// Time that the host and its kernels compute, by all ranks: what one of them owns says nothing of
/// which is slow.
Duration computing(const RankOfJob& rank, const std::vector<bool>& by_all) {
  Duration sum{};
  for (std::size_t i = 0; i < rank.times.size(); ++i) {
    const program::Task& task = rank.program.tasks[i];
    const program::Action& action = rank.action_of(task);
    const bool waits = std::holds_alternative<program::Wait>(action) ||
                       std::holds_alternative<program::Meet>(action) ||
                       std::holds_alternative<program::Pause>(action);
    if (program::communicator_of(action) == nobody && !waits && by_all[task.deed])
      sum += rank.times[i].end - rank.times[i].start;
  }
  return sum;
}

/// [work of the job] as a calibration knows it.
std::vector<std::optional<Work>> measured_works(const program::Job& job) {
  std::vector<std::optional<Work>> works;
  for (const Work& work : job.works) works.push_back(measured_as(work));
  return works;
}

/// Calls `each` with every task of a rank that a calibration measures, its work and its time.
template <typename Each>
void each_measured(const RankOfJob& rank, const std::vector<std::optional<Work>>& works,
                   Each each) {
  for (std::size_t i = 0; i < rank.times.size(); ++i) {
    const program::Task& task = rank.program.tasks[i];
    if (works[task.work] && !rank.is_part_of_another(task))
      each(task, *works[task.work], rank.times[i].end - rank.times[i].start);
  }
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
    (hooked ? hooked_ : plain_).runs.push_back({&step, job_of(without_communication(step))});
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
      each.executed = job_of_(with_pauses(*each.step, [&](const Work& work) {
        return law ? law->time(0, work.payload) : Duration::zero();
      }));
  RunOptions by_processor;
  by_processor.by_processor = true;
  run(hooked_, by_processor, counts);
}

void MeasureKernels::run(Measured& measured, const RunOptions& how, bool counts) {
  for (Run& each : measured.runs) {
    JobTimeline timeline =
        undisturbed(backend_, [&] { return measure_step(backend_, each.executed, how); });
    if (!counts) continue;
    const auto works = measured_works(each.executed);
    each_rank(each.executed, timeline, [&](const RankOfJob& rank) {
      each_measured(rank, works, [&](const program::Task&, const Work& work, Duration time) {
        const std::uint32_t number = measured.works.add(work);
        if (number == measured.samples.size()) measured.samples.emplace_back();
        measured.samples[number].push_back(time);
      });
    });
    each.timelines.push_back(std::move(timeline));
  }
}

double MeasureKernels::computing_first(const Measured& measured) {
  std::vector<double> all;
  const Run& first = measured.runs.front();
  const std::vector<bool> by_all = done_by_all(first.executed);
  for (const JobTimeline& timeline : first.timelines)
    each_rank(first.executed, timeline,
              [&](const RankOfJob& rank) { all.push_back(in_seconds(computing(rank, by_all))); });
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
      each_rank(run.executed, timeline, [&](const RankOfJob& rank) {
        std::map<Operation, std::pair<double, double>> sums;  // as measured, of medians
        each_measured(rank, works, [&](const program::Task&, const Work& work, Duration time) {
          auto& [taken, usual] = sums[work.operation];
          taken += in_seconds(time);
          usual += medians.at(work);
        });
        for (const auto& [operation, sum] : sums)
          if (sum.second > 0) ratios[operation].push_back(sum.first / sum.second);
      });
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
    for (const program::Program& program : run.executed.programs)
      for (const program::Task& task : program.tasks)
        if (run.executed.deed_of(task).origin.purpose == program::Purpose::hook)
          hooked.insert(task.micro_batch);
    const auto works = measured_works(run.executed);
    for (const JobTimeline& timeline : run.timelines)
      each_rank(run.executed, timeline, [&](const RankOfJob& rank) {
        each_measured(rank, works, [&](const program::Task& task, const Work& work, Duration time) {
          if (operation_of(run.executed, task) != Operation::backward) return;
          if (only_hooked && hooked.count(task.micro_batch) == 0) return;
          call(work, in_seconds(time));
        });
      });
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
  for (const Run& run : plain_.runs) {
    const std::vector<bool> by_all = done_by_all(run.executed);
    for (const JobTimeline& timeline : run.timelines) {
      double most = 0, sum = 0;
      each_rank(run.executed, timeline, [&](const RankOfJob& rank) {
        const double mine = in_seconds(computing(rank, by_all));
        most = std::max(most, mine);
        sum += mine;
      });
      if (sum > 0) slowest.push_back(most * static_cast<double>(timeline.classes.size()) / sum);
    }
  }
  return slowest.empty() ? 1 : std::max(1.0, median(std::move(slowest)));
}

}  // namespace ddpsim
