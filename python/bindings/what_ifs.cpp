#include "python/bindings/what_ifs.hpp"

#include <stdexcept>

#include "model/parallel/policy/bucket_plan.hpp"
#include "sim/predict/planned_step.hpp"
#include "sim/predict/predict.hpp"
#include "tools/study/measured_rows.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_kept = 64;  // price lists

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

void WhatIfs::use(Priced& priced, const Links& links) const {
  if (priced.links == links) return;
  if (scenario_.cluster.ranks() == 1)
    throw std::invalid_argument("one rank sends nothing: its links change nothing");
  Link intra = scenario_.cluster.intra_node, inter = scenario_.cluster.inter_node;
  Link& deciding = scenario_.cluster.nodes > 1 ? inter : intra;
  if (links.latency >= 0) deciding.latency = Duration(links.latency);
  if (links.bandwidth >= 0) {
    // The share of it that NCCL's search assumes stays, as under a link's key `base`.
    const double before = deciding.bandwidth.bytes_per_second;
    if (before > 0) deciding.nccl_bandwidth.bytes_per_second *= links.bandwidth / before;
    deciding.bandwidth = {links.bandwidth};
  }
  priced.costs.use_links(intra, inter);
  if (priced.buckets) priced.buckets->take_links(priced.costs);
  priced.links = links;
}

WhatIfs::Priced& WhatIfs::priced(const Kernels& kernels) {
  const auto found = kept_.find(kernels);
  if (found != kept_.end()) return found->second;
  if (kept_.size() >= most_kept) kept_.clear();
  CostModel costs = model_.costs;
  if (kernels.compute != 1) costs.passes.push_back({kernels.compute, kernels.compute, 1});
  if (kernels.slowest_rank >= 1) costs.slowest_rank = kernels.slowest_rank;
  return kept_.emplace(kernels, Priced{std::move(costs)}).first->second;
}

Duration WhatIfs::step(const Differences& differences) {
  const Training training = training_of(differences);
  const std::lock_guard lock(mutex_);
  Priced& at = priced({differences.compute, differences.slowest_rank.value_or(-1)});
  use(at, {differences.latency ? differences.latency->count() : -1,
           differences.bandwidth ? differences.bandwidth->bytes_per_second : -1});
  if (training.strategy == Strategy::bucketed && training.iteration == 0) {
    if (!buckets_) buckets_.emplace(model_, scenario_.training);
    if (!buckets_->why_simulated()) {
      if (!at.buckets) at.buckets.emplace(*buckets_, at.costs);
      std::vector<std::vector<int>> buckets;
      for (const Bucket& bucket : plan_buckets(model_.works, training))
        buckets.emplace_back(bucket.parameters.begin(), bucket.parameters.end());
      return at.buckets->of(buckets);
    }
  }
  return predict(at.costs, training,
                 std::make_shared<const PlannedStep>(plan_step(model_.works, training)))
      .metrics.step;
}

}  // namespace ddpsim
