#include "tools/study/slowed_ranks.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/base/index.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "sim/engine/price.hpp"
#include "sim/predict/predict.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {

void check_exceptions(const Scenario& scenario) {
  const Cluster& cluster = scenario.cluster;
  const auto refuse = [&](const RankException& exception, const std::string& why) {
    throw InputError(
        fmt::format("{}: cluster.exceptions: {}: {}", scenario.file, name_of(exception), why));
  };
  int different = 0;
  for (const RankException& exception : cluster.exceptions) {
    if (!cluster.device.synchronous)
      refuse(exception, "GPUs keep their own pace: write --set cluster.exceptions=[]");
    if (exception.nic)
      refuse(exception,
             "real NICs keep their rate: take nic out; a link that is slow is measured as it is");
    if (exception.compute < 1)
      refuse(exception, fmt::format("real ranks can be made slower and not quicker: expected a "
                                    "compute of at least 1, got {:g}",
                                    exception.compute));
    if (exception.rank + exception.ranks > cluster.ranks())
      refuse(exception,
             fmt::format("expected {} from 0 to {}, for {} rank{}",
                         exception.node ? "a node with ranks" : "a rank", cluster.ranks() - 1,
                         cluster.ranks(), cluster.ranks() == 1 ? " runs" : "s run"));
    different += exception.ranks;
    if (different == cluster.ranks())
      refuse(exception, fmt::format("one rank at least of the {} that run{} has to be no exception",
                                    cluster.ranks(), cluster.ranks() == 1 ? "s" : ""));
  }
}

std::vector<RunOptions> paces_of(const Scenario& scenario, const std::vector<program::Job>& jobs,
                                 int rank) {
  std::vector<RunOptions> paces(jobs.size());
  const RankException* exception = exception_of(scenario.cluster.exceptions, rank);
  if (exception == nullptr) return paces;
  const CostModel costs = model_of(scenario).costs;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    paces[j].compute = exception->compute;
    const JobCosts of_job = price(costs, jobs[j]);
    const std::uint16_t kind = of_job.of_rank[at(rank)];
    // A rank without inputs computes nothing that it could stand still before.
    if (kind >= of_job.pauses.size() || of_job.pauses[kind].empty()) continue;
    paces[j].pause = exception->pause;
    paces[j].pause_before = of_job.pauses[kind].front().task;
  }
  return paces;
}

std::vector<int> typical_ranks(const Training& training, const Cluster& cluster, int ranks) {
  const int joined = training.join ? training.join->joined_ranks : 0;
  const int with_inputs = std::min(ranks, std::max(1, cluster.ranks() - joined));
  std::vector<int> all, typical;
  for (int rank = 0; rank < with_inputs; ++rank) {
    all.push_back(rank);
    if (exception_of(cluster.exceptions, rank) == nullptr) typical.push_back(rank);
  }
  return typical.empty() ? all : typical;
}

void Waits::add(const std::vector<std::string>& names, const std::vector<WaitForRank>& of_step) {
  for (const WaitForRank& wait : of_step) waited_[names.at(wait.rank)] += wait.waited;
}

std::optional<LateRank> Waits::latest(std::size_t steps) const {
  if (waited_.empty()) return std::nullopt;
  const auto longest =
      std::ranges::max_element(waited_, {}, [](const auto& each) { return each.second; });
  return LateRank{longest->first, longest->second / static_cast<std::int64_t>(steps)};
}

std::optional<LateRank> late_rank(const Scenario& scenario, const Step& step) {
  Waits waits;
  const std::vector<std::string> names = names_of_ranks(scenario, step);
  if (names.empty()) return std::nullopt;
  std::vector<WaitForRank> waited =
      waits_for_ranks(step.job(), step.times, step.metrics, step.ranks.front());
  for (WaitForRank& each : waited) each.rank = step.index_of(each.rank);
  waits.add(names, waited);
  return waits.latest(1);
}

}  // namespace ddpsim
