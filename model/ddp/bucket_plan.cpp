// Which gradients travel together, for the strategies that use buckets: DDP's own assignment, or
// what the user asked for.

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "model/ddp/iteration.hpp"
#include "model/ddp/schedule_builder.hpp"
#include "model/ddp/zero_step.hpp"

namespace ddpsim {
namespace {

std::vector<std::vector<std::int32_t>> explicit_buckets(const StepCosts& costs,
                                                        const Training& training) {
  std::vector<int> uses(costs.gradients.size(), 0);
  for (const auto& bucket : training.buckets) {
    if (bucket.empty()) throw std::invalid_argument("a bucket must hold at least one parameter");
    for (const int index : bucket) {
      if (index < 0 || static_cast<std::size_t>(index) >= uses.size())
        throw std::invalid_argument(
            fmt::format("buckets name parameter {} of {}", index, uses.size()));
      ++uses[static_cast<std::size_t>(index)];
    }
  }
  for (std::size_t i = 0; i < uses.size(); ++i)
    if (uses[i] != 1)
      throw std::invalid_argument(
          fmt::format("buckets must hold every parameter once; parameter {} is in {}", i, uses[i]));
  return {training.buckets.begin(), training.buckets.end()};
}

/// Contiguous groups in registration order, as equal in count as can be; the last group is ready
/// first. Inside a group parameters lie in the order they arrive.
std::vector<std::vector<std::int32_t>> group_buckets(const StepCosts& costs, int groups) {
  const auto count = static_cast<int>(costs.gradients.size());
  if (groups > count)
    throw std::invalid_argument(
        fmt::format("{} parameter groups of {} parameters: some would be empty", groups, count));
  std::vector<std::vector<std::int32_t>> buckets(static_cast<std::size_t>(groups));
  for (const int index : costs.arrival) {
    const auto group = static_cast<std::int64_t>(index) * groups / count;
    buckets[static_cast<std::size_t>(groups - 1 - group)].push_back(index);
  }
  return buckets;
}

std::vector<std::vector<std::int32_t>> ddp_buckets(const StepCosts& costs,
                                                   const Training& training) {
  const DdpBucketing ddp{
      training.limits(),     training.bucket_rule,          training.find_unused_parameters,
      training.static_graph, !training.bucket_caps.empty(), training.last_bucket_cap};
  std::vector<GradientInfo> gradients = costs.gradients;
  if (training.delayed)
    for (const std::int32_t index : training.delayed->parameters)
      gradients.at(static_cast<std::size_t>(index)).ignored = true;
  auto assigned = before_rebuild(training) ? initial_buckets(gradients, ddp)
                                           : steady_buckets(gradients, costs.arrival, ddp);
  std::vector<std::vector<std::int32_t>> buckets;
  buckets.reserve(assigned.size());
  for (BucketAssignment& bucket : assigned) buckets.push_back(std::move(bucket.parameters));
  return buckets;
}

}  // namespace

std::string delayed_refusal(const Training& training) {
  if (!training.delayed) return "";
  const CommHookKind hook = training.comm_hook.kind;
  if (training.micro_batches > 1)
    return "delay_all_reduce: its hook divides the buffer with every backward: set micro_batches: "
           "1";
  if (training.join)
    return "delay_all_reduce: a rank without inputs would not send it: take join out";
  if (hook == CommHookKind::optimizer_overlap || is_zero_step(hook))
    return fmt::format("delay_all_reduce: {} updates parameters in DDP's buckets only: take it out",
                       name_of(hook));
  if (!training.buckets.empty() || training.parameter_groups > 0)
    return "delay_all_reduce goes with the buckets DDP makes: take buckets and parameter_groups "
           "out";
  return "";
}

bool is_sparse(const StepCosts& costs, const Bucket& bucket) {
  return bucket.parameters.size() == 1 &&
         costs.gradients[static_cast<std::size_t>(bucket.parameters.front())].sparse;
}

std::vector<Bucket> plan_buckets(const StepCosts& costs, const Training& training) {
  if (const std::string why = delayed_refusal(training); !why.empty())
    throw std::invalid_argument(why);
  auto contents = !training.buckets.empty()       ? explicit_buckets(costs, training)
                  : training.parameter_groups > 0 ? group_buckets(costs, training.parameter_groups)
                                                  : ddp_buckets(costs, training);
  std::vector<Bucket> buckets;
  buckets.reserve(contents.size());
  for (auto& parameters : contents) {
    Bucket& bucket = buckets.emplace_back();
    for (const std::int32_t index : parameters)
      bucket.size += costs.gradients[static_cast<std::size_t>(index)].size;
    bucket.parameters = std::move(parameters);
    if (is_sparse(costs, bucket)) {
      const StepCosts::Sparse& sparse =
          costs.sparse[static_cast<std::size_t>(bucket.parameters.front())];
      bucket.size = sparse.indices + sparse.values;
    }
  }
  return buckets;
}

}  // namespace ddpsim
