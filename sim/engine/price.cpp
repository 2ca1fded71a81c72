#include "sim/engine/price.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "model/base/index.hpp"

namespace ddpsim {
namespace {

/// The kernel among the tasks [begin, end) by which the share `at` of what the network and its
/// optimizer compute in them is enqueued: with 0 the first, with 1 the last; `end` if they compute
/// nothing. Copies and hooks do not count, so that it is the same kernel under every strategy.
std::uint32_t kernel_at(const program::Job& job, const program::Program& program,
                        const Costs& costs, double at, std::uint32_t begin, std::uint32_t end) {
  const auto work = [&](std::uint32_t t) {
    const program::Task& task = program.tasks[t];
    return is_training(job.works[task.work].operation) ? costs.works[task.work].work
                                                       : Duration::zero();
  };
  Duration all{}, so_far{};
  for (std::uint32_t t = begin; t < end; ++t) all += work(t);
  const Duration until = scaled(all, at);
  std::uint32_t kernel = end;
  for (std::uint32_t t = begin; t < end && (kernel == end || so_far < until); ++t) {
    if (work(t) == Duration::zero()) continue;
    kernel = t;
    so_far += work(t);
  }
  return kernel;
}

constexpr std::size_t most_tasks = 10'000'000;  // of all kinds of rank together
constexpr std::size_t most_kinds = 0xffff;

class Pricing {
 public:
  Pricing(const CostModel& model, const program::Job& job, const CostChange& change,
          std::span<const std::uint32_t> begins)
      : model_(model), job_(job), begins_(begins) {
    costs_.kinds.push_back(model_.price(job_.works, job_.passes));
    if (change) change(job_.works, costs_.kinds.front());
    costs_.of_rank.assign(job_.ranks(), 0);
  }

  JobCosts run() {
    for (const RankException& exception : model_.exceptions)
      if (exception.computes_otherwise()) add(exception);
    if (const int slowest = OrdinaryRanks(model_, job_.ranks()).slowest(); slowest != nobody)
      costs_.of_rank[at(slowest)] = slowed(model_.slowest_rank);
    return std::move(costs_);
  }

 private:
  /// A kind of costs: those of a rank that computes slower by `factor`.
  std::uint16_t slowed(double factor) {
    if (factor == 1) return 0;
    const auto [known, is_new] = slowed_.try_emplace(factor, 0);
    if (is_new)
      known->second =
          add(slowed_down(job_.works, model_.synchronous, costs_.kinds.front(), factor));
    return known->second;
  }

  std::uint16_t add(Costs costs) {
    const std::size_t kinds = costs_.kinds.size() + 1, tasks = job_.programs.front().tasks.size();
    if (kinds > most_kinds || kinds * tasks > most_tasks)
      throw std::invalid_argument(fmt::format(
          "a step in which {} kinds of rank or more compute differently, each with {} tasks, is "
          "beyond what is simulated ({} tasks, {} kinds): write fewer cluster.exceptions that "
          "differ from one another",
          kinds, tasks, most_tasks, most_kinds));
    costs_.kinds.push_back(std::move(costs));
    return static_cast<std::uint16_t>(costs_.kinds.size() - 1);
  }

  void add(const RankException& exception) {
    const std::uint16_t kind = slowed(exception.compute);
    std::map<std::uint16_t, std::uint16_t> pausing;  // by program
    for (int rank = exception.rank; rank < exception.rank + exception.ranks; ++rank) {
      costs_.of_rank[at(rank)] = kind;
      if (exception.pause == Duration::zero()) continue;
      const std::uint16_t program = job_.program_of[at(rank)];
      const auto [known, is_new] = pausing.try_emplace(program, kind);
      if (is_new) known->second = paused(kind, job_.programs[program], exception);
      costs_.of_rank[at(rank)] = known->second;
    }
  }

  /// A kind of costs as this one, of a host that pauses in each step of the program.
  std::uint16_t paused(std::uint16_t like, const program::Program& program,
                       const RankException& exception) {
    const auto tasks = static_cast<std::uint32_t>(program.tasks.size());
    std::vector<JobCosts::Pause> pauses;
    const auto pause_in = [&](std::uint32_t begin, std::uint32_t end) {
      const std::uint32_t kernel =
          kernel_at(job_, program, costs_.kinds[like], exception.at, begin, end);
      if (kernel < end) pauses.push_back({kernel, exception.pause});
    };
    if (begins_.empty()) pause_in(0, tasks);
    for (std::size_t step = 0; step < begins_.size(); ++step)
      pause_in(begins_[step], step + 1 < begins_.size() ? begins_[step + 1] : tasks);
    const std::uint16_t kind = add(Costs(costs_.kinds[like]));
    costs_.pauses.resize(costs_.kinds.size());
    costs_.pauses[kind] = std::move(pauses);
    return kind;
  }

  const CostModel& model_;
  const program::Job& job_;
  std::span<const std::uint32_t> begins_;
  JobCosts costs_;
  std::map<double, std::uint16_t> slowed_;  // [factor] its kind of costs
};

}  // namespace

OrdinaryRanks::OrdinaryRanks(const CostModel& model, std::size_t ranks) : ordinary_(ranks, true) {
  for (const RankException& exception : model.exceptions)
    if (exception.computes_otherwise())
      for (int rank = exception.rank; rank < exception.rank + exception.ranks; ++rank)
        ordinary_.at(at(rank)) = false;
  if (model.slowest_rank <= 1 || ranks <= 1) return;
  const auto last = std::find(ordinary_.rbegin(), ordinary_.rend(), true);
  if (last != ordinary_.rend()) slowest_ = static_cast<int>(ordinary_.rend() - last) - 1;
}

JobCosts price(const CostModel& model, const program::Job& job, const CostChange& change,
               std::span<const std::uint32_t> begins) {
  return Pricing(model, job, change, begins).run();
}

JobCosts price_as_slowest(const CostModel& model, const program::Job& job) {
  return {{slowed_down(job.works, model.synchronous, model.price(job.works, job.passes),
                       model.slowest_rank)},
          std::vector<std::uint16_t>(job.ranks(), 0)};
}

double total_seconds(const program::Job& job, const JobCosts& costs, std::size_t rank) {
  const Costs& kind = costs.kinds[costs.of_rank[rank]];
  std::vector<std::uint32_t> uses(kind.works.size());
  for (const program::Task& task : job.programs[job.program_of[rank]].tasks) ++uses[task.work];
  double seconds = 0;
  for (std::size_t w = 0; w < uses.size(); ++w)
    seconds += uses[w] * (in_seconds(kind.works[w].host) + in_seconds(kind.works[w].work));
  if (costs.of_rank[rank] < costs.pauses.size())
    for (const JobCosts::Pause& pause : costs.pauses[costs.of_rank[rank]])
      seconds += in_seconds(pause.length);
  return seconds;
}

}  // namespace ddpsim
