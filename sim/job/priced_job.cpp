#include "sim/job/priced_job.hpp"

#include <map>
#include <utility>

#include "model/base/index.hpp"

namespace ddpsim {
namespace {

/// The kernel by which the share `at` of all that the program computes is enqueued: with 0 the
/// first, with 1 the last; behind the last task if it computes nothing. What it computes is the
/// work of its host and of streams that are not beside the device's others.
std::size_t kernel_at(const program::Job& job, const program::Program& program, const Costs& costs,
                      double at) {
  const auto work = [&](const program::Task& task) {
    return job.streams[task.stream].beside ? Duration::zero() : costs.works[task.work].work;
  };
  Duration all{}, so_far{};
  for (const program::Task& task : program.tasks) all += work(task);
  const Duration until = scaled(all, at);
  std::size_t kernel = program.tasks.size();
  for (std::size_t t = 0; t < program.tasks.size(); ++t) {
    if (kernel < program.tasks.size() && so_far >= until) break;
    if (work(program.tasks[t]) == Duration::zero()) continue;
    kernel = t;
    so_far += work(program.tasks[t]);
  }
  return kernel;
}

class Pricing {
 public:
  Pricing(const CostModel& model, program::Job job) : model_(model), priced_{std::move(job), {}} {
    priced_.costs.kinds.push_back(model_.price(priced_.job.works, priced_.job.passes));
    priced_.costs.of_rank.assign(priced_.job.ranks(), 0);
  }

  PricedJob run() {
    for (const RankException& exception : model_.exceptions)
      if (exception.computes_otherwise()) add(exception);
    if (model_.slowest_rank > 1 && priced_.job.ranks() > 1) add_slowest();
    return std::move(priced_);
  }

 private:
  /// A kind of costs: those of a rank that computes slower by `factor`.
  std::uint16_t slowed(double factor) {
    if (factor == 1) return 0;
    JobCosts& costs = priced_.costs;
    costs.kinds.push_back(
        slowed_down(priced_.job.works, model_.synchronous, costs.kinds.front(), factor));
    return static_cast<std::uint16_t>(costs.kinds.size() - 1);
  }

  void add(const RankException& exception) {
    const std::uint16_t kind = slowed(exception.compute);
    std::map<std::uint16_t, std::uint16_t> pausing;  // by the program without a pause
    for (int rank = exception.rank; rank < exception.rank + exception.ranks; ++rank) {
      priced_.costs.of_rank[at(rank)] = kind;
      if (exception.pause == Duration::zero()) continue;
      std::uint16_t& program = priced_.job.program_of[at(rank)];
      const auto [known, is_new] =
          pausing.try_emplace(program, static_cast<std::uint16_t>(priced_.job.programs.size()));
      if (is_new) add_pausing(program, kind, exception);
      program = known->second;
    }
  }

  /// A program as this one, but for a pause.
  void add_pausing(std::uint16_t like, std::uint16_t kind, const RankException& exception) {
    program::Job& job = priced_.job;
    program::Program program = job.programs[like];
    const std::size_t kernel = kernel_at(job, program, priced_.costs.kinds[kind], exception.at);
    if (kernel < program.tasks.size()) {
      const std::uint32_t without =
          std::exchange(program.tasks[kernel].work, static_cast<std::uint32_t>(job.works.size()));
      Work work = job.works[without];
      work.host += exception.pause;
      job.works.push_back(work);
      for (Costs& costs : priced_.costs.kinds) {
        WorkCost cost = costs.works[without];
        cost.host += exception.pause;
        cost.first_launch += exception.pause;
        costs.works.push_back(cost);
      }
    }
    job.programs.push_back(std::move(program));
  }

  void add_slowest() {
    for (std::size_t rank = priced_.job.ranks(); rank-- > 0;) {
      const RankException* exception = exception_of(model_.exceptions, static_cast<int>(rank));
      if (exception != nullptr && exception->computes_otherwise()) continue;
      priced_.costs.of_rank[rank] = slowed(model_.slowest_rank);
      return;
    }
  }

  const CostModel& model_;
  PricedJob priced_;
};

}  // namespace

PricedJob priced(const CostModel& model, program::Job job) {
  return Pricing(model, std::move(job)).run();
}

}  // namespace ddpsim
