#include "python/bindings/what_ifs.hpp"

#include <stdexcept>

#include "model/cluster/deciding_link.hpp"
#include "model/ddp/bucket_plan.hpp"
#include "model/ddp/build_schedule.hpp"
#include "sim/predict/predict.hpp"
#include "tools/study/measured_rows.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_kept = 64;  // price lists

Link& link_that_decides(Cluster& cluster) {
  return cluster.nodes > 1 ? cluster.inter_node : cluster.intra_node;
}

}  // namespace

WhatIfs::WhatIfs(const Question& question)
    : scenario_(read(question)), model_(price_calibrated(scenario_, question.laws_only).model) {}

Training WhatIfs::training_of(const Differences& differences) const {
  Training training = scenario_.training;
  if (differences.strategy) training.strategy = *differences.strategy;
  if (differences.bucket_cap || differences.first_bucket_cap || differences.bucket_caps) {
    training.bucket_caps.clear();
    training.buckets.clear();
    training.parameter_groups = 0;
  }
  if (differences.bucket_cap) training.give_cap(*differences.bucket_cap);
  if (differences.first_bucket_cap) training.first_bucket_cap = *differences.first_bucket_cap;
  if (differences.bucket_caps) training.bucket_caps = *differences.bucket_caps;
  return training;
}

CostModel WhatIfs::costs_of(const Prices& prices) const {
  CostModel costs = model_.costs;
  if (prices.latency >= 0 || prices.bandwidth >= 0) {
    CalibratedCluster cluster = scenario_.cluster;
    if (cluster.ranks() == 1)
      throw std::invalid_argument("one rank sends nothing: no link has an effect");
    if (std::string(costs.collective.name()) == "table")
      throw std::invalid_argument(
          "all-reduces are those of a measured table, which latency and bandwidth do not change");
    Link& link = link_that_decides(cluster);
    if (prices.latency >= 0) link.latency = Duration(prices.latency);
    if (prices.bandwidth >= 0) {
      link.bandwidth = {prices.bandwidth};
      link.nccl_bandwidth = {};
    }
    CollectiveLaw law(cluster);
    law.call_overhead = costs.collective.call_overhead;
    law.latency_factor = costs.collective.latency_factor;
    law.transfer_factor = costs.collective.transfer_factor;
    costs.collective = law;
  }
  if (prices.compute != 1) costs.passes.push_back({prices.compute, prices.compute, 1});
  if (prices.slowest_rank >= 0) costs.slowest_rank = prices.slowest_rank;
  return costs;
}

WhatIfs::Priced& WhatIfs::priced(const Prices& prices) {
  const auto found = kept_.find(prices);
  if (found != kept_.end()) return found->second;
  if (kept_.size() >= most_kept) kept_.clear();
  return kept_.emplace(prices, Priced{costs_of(prices), std::nullopt}).first->second;
}

BucketedSteps& WhatIfs::bucketed(Priced& priced) {
  if (!buckets_) buckets_.emplace(model_, scenario_.training);
  if (!priced.buckets) priced.buckets.emplace(*buckets_, priced.costs);
  return *priced.buckets;
}

Duration WhatIfs::step(const Differences& differences) {
  const Training training = training_of(differences);
  Prices prices{.compute = differences.compute};
  if (differences.latency) prices.latency = differences.latency->count();
  if (differences.bandwidth) prices.bandwidth = differences.bandwidth->bytes_per_second;
  if (differences.slowest_rank) prices.slowest_rank = *differences.slowest_rank;
  const std::lock_guard lock(mutex_);
  Priced& at = priced(prices);
  const bool buckets_alone = training.strategy == Strategy::bucketed && training.iteration == 0 &&
                             !bucketed(at).why_simulated();
  if (!buckets_alone)
    return predict(at.costs, training, build_schedule(model_.works, training)).metrics.step;
  std::vector<std::vector<int>> buckets;
  for (const Bucket& bucket : plan_buckets(model_.works, training))
    buckets.emplace_back(bucket.parameters.begin(), bucket.parameters.end());
  return bucketed(at).of(buckets);
}

}  // namespace ddpsim
