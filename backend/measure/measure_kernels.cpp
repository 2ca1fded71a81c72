#include "backend/measure/measure_kernels.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "backend/job/steal.hpp"
#include "backend/measure/measure_step.hpp"
#include "model/cost/calibration_fit.hpp"

namespace ddpsim {
namespace {

/// By all ranks: what one of them owns says nothing of which is slow.
Duration computing(const Schedule& schedule, const std::vector<TaskTimes>& times) {
  Duration sum{};
  for (std::size_t i = 0; i < times.size(); ++i)
    if (!is_collective(schedule.tasks[i].operation) && schedule.tasks[i].owner == nobody &&
        schedule.tasks[i].operation != Operation::wait)
      sum += times[i].end - times[i].start;
  return sum;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Spread spread_of(std::vector<Duration> samples) {
  if (samples.empty()) throw std::invalid_argument("nothing was measured");
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    return samples[static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1) + 0.5)];
  };
  Spread spread{at(0.5), at(0.1), at(0.9), static_cast<int>(samples.size()), 0};
  const Duration reach = 3 * (at(0.75) - at(0.25));
  for (const Duration sample : samples)
    if (sample < at(0.25) - reach || sample > at(0.75) + reach) ++spread.outliers;
  return spread;
}

MeasureKernels::MeasureKernels(Backend& backend, const Workload& workload, Optimizer optimizer,
                               const std::vector<Schedule>& steps)
    : backend_(backend), kinds_(workload, optimizer), first_(steps.front()) {
  for (const Schedule& step : steps)
    (backend.synchronous() && computes_aside(step) ? hooked_ : plain_).steps.push_back(&step);
  if (plain_.steps.empty() || plain_.steps.front() != &first_)
    throw std::invalid_argument("the first step must not communicate");
  if (has_hooked()) hooked_.steps.insert(hooked_.steps.begin(), &first_);  // by the same clock
}

void MeasureKernels::run_plain(bool counts) {
  RunOptions alone;
  alone.communicate = false;
  run(plain_, alone, counts);
}

void MeasureKernels::run_hooked(const std::vector<AllReduceCost>& all_reduces, bool counts) {
  const auto law = fit_all_reduce(all_reduces);
  RunOptions beside;
  beside.communicate = false;
  beside.stand_in = [&](const Task& task) {
    return law ? law->time(0, task.bytes) : Duration::zero();
  };
  run(hooked_, beside, counts);
}

void MeasureKernels::run(Measured& measured, const RunOptions& how, bool counts) {
  for (const Schedule* step : measured.steps) {
    Timeline timeline = undisturbed(backend_, [&] { return measure_step(backend_, *step, how); });
    if (!counts) continue;
    for (const auto& times : timeline.ranks)
      for (std::size_t i = 0; i < times.size(); ++i)
        if (const auto kind = kinds_.of(*step, step->tasks[i]))
          measured.samples[*kind].push_back(times[i].end - times[i].start);
    measured.timelines.emplace_back(step, std::move(timeline));
  }
}

double MeasureKernels::computing_first(const Measured& measured) const {
  std::vector<double> all;
  for (const auto& [step, timeline] : measured.timelines)
    if (step == &first_)
      for (const auto& times : timeline.ranks) all.push_back(in_seconds(computing(*step, times)));
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
  if (hooked_.timelines.empty()) return;
  const double given = computing_first(hooked_);  // by the processor
  add(hooked_, given > 0 ? computing_first(plain_) / given : 1, medians, calibration);
  for (const auto& [operation, factor] : over_medians(hooked_, medians)) {
    const auto plain = std::find_if(calibration.factors.begin(), calibration.factors.end(),
                                    [&](const auto& each) { return each.operation == operation; });
    if (plain == calibration.factors.end()) calibration.factors.push_back({operation, factor});
  }
  calibration.backward_beside_hook = backward_beside({});
}

void MeasureKernels::add(const Measured& measured, double factor, Medians& medians,
                         Calibration& calibration) {
  for (const auto& [kind, times] : measured.samples) {
    Spread spread = spread_of(times);
    if (!medians.emplace(kind, in_seconds(spread.median)).second) continue;
    for (Duration* time : {&spread.median, &spread.low, &spread.high})
      *time = scaled(*time, factor);
    calibration.tasks.push_back(
        {kind.operation, kind.gemm, kind.traffic, kind.type, spread, kind.aside});
  }
}

/// What an operation's tasks take together over their medians added up, in the median step.
std::map<Operation, double> MeasureKernels::over_medians(const Measured& measured,
                                                         const Medians& medians) const {
  std::map<Operation, std::vector<double>> ratios;
  for (const auto& [step, timeline] : measured.timelines)
    for (const auto& times : timeline.ranks) {
      std::map<Operation, std::pair<double, double>> sums;  // as measured, of medians
      for (std::size_t i = 0; i < times.size(); ++i)
        if (const auto kind = kinds_.of(*step, step->tasks[i])) {
          auto& [taken, usual] = sums[kind->operation];
          taken += in_seconds(times[i].end - times[i].start);
          usual += medians.at(*kind);
        }
      for (const auto& [operation, sum] : sums)
        if (sum.second > 0) ratios[operation].push_back(sum.first / sum.second);
    }
  std::map<Operation, double> factors;
  for (auto& [operation, values] : ratios) factors[operation] = median(std::move(values));
  return factors;
}

double MeasureKernels::backward_beside(const std::optional<CommHook>& hook) const {
  std::map<TaskKind, std::pair<double, int>> alone;  // sum and number
  const auto each_backward = [&](bool first, auto call) {
    for (const auto& [step, timeline] : hooked_.timelines) {
      if ((step == &first_) != first) continue;
      if (!first && hook && step->comm_hook != *hook) continue;
      std::set<int> hooked;  // micro-batches
      for (const Task& task : step->tasks)
        if (task.step != nobody) hooked.insert(task.micro_batch);
      for (const auto& times : timeline.ranks)
        for (std::size_t i = 0; i < times.size(); ++i) {
          const Task& task = step->tasks[i];
          if (task.operation != Operation::backward) continue;
          if (!first && hooked.count(task.micro_batch) == 0) continue;
          if (const auto kind = kinds_.of(*step, task))
            call(*kind, in_seconds(times[i].end - times[i].start));
        }
    }
  };
  each_backward(true, [&](const TaskKind& kind, double time) {
    alone[kind].first += time;
    ++alone[kind].second;
  });
  double beside = 0, expected = 0;
  each_backward(false, [&](const TaskKind& kind, double time) {
    const auto& [sum, count] = alone.at(kind);
    beside += time;
    expected += sum / count;
  });
  return expected > 0 ? std::max(1.0, beside / expected) : 1;
}

double MeasureKernels::slowest_rank() const {
  std::vector<double> slowest;
  for (const auto& [step, timeline] : plain_.timelines) {
    double most = 0, sum = 0;
    for (const auto& times : timeline.ranks) {
      const double mine = in_seconds(computing(*step, times));
      most = std::max(most, mine);
      sum += mine;
    }
    if (sum > 0) slowest.push_back(most * static_cast<double>(timeline.ranks.size()) / sum);
  }
  return slowest.empty() ? 1 : std::max(1.0, median(std::move(slowest)));
}

}  // namespace ddpsim
