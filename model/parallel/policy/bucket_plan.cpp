// Which gradients travel together, for the strategies that use buckets: DDP's own assignment, or
// what the user asked for.

#include "model/parallel/policy/bucket_plan.hpp"

#include "model/parallel/policy/iteration.hpp"
#include "model/parallel/policy/refusals.hpp"

namespace ddpsim {
namespace {

/// Contiguous groups in registration order, as equal in count as can be; the last group is ready
/// first. Inside a group parameters lie in the order they arrive.
std::vector<std::vector<std::int32_t>> group_buckets(const StepWorks& works, int groups) {
  const auto count = static_cast<int>(works.gradients.size());
  std::vector<std::vector<std::int32_t>> buckets(static_cast<std::size_t>(groups));
  for (const int index : works.arrival) {
    const auto group = static_cast<std::int64_t>(index) * groups / count;
    buckets[static_cast<std::size_t>(groups - 1 - group)].push_back(index);
  }
  return buckets;
}

/// Gradients as DDP's reducer sees them: it does not know those whose all-reduce is delayed.
std::vector<GradientInfo> known_to_reducer(std::vector<GradientInfo> gradients,
                                           const Training& training) {
  if (training.delayed)
    for (const std::int32_t index : training.delayed->parameters)
      gradients.at(static_cast<std::size_t>(index)).ignored = true;
  return gradients;
}

std::vector<std::vector<std::int32_t>> ddp_buckets(const StepWorks& works,
                                                   const Training& training) {
  const DdpBucketing ddp = bucketing_of(training);
  const std::vector<GradientInfo> gradients = known_to_reducer(works.gradients, training);
  auto assigned = before_rebuild(training) ? initial_buckets(gradients, ddp)
                                           : steady_buckets(gradients, works.arrival, ddp);
  std::vector<std::vector<std::int32_t>> buckets;
  buckets.reserve(assigned.size());
  for (BucketAssignment& bucket : assigned) buckets.push_back(std::move(bucket.parameters));
  return buckets;
}

}  // namespace

DdpBucketing bucketing_of(const Training& training) {
  return {training.limits(),     training.bucket_rule,          training.find_unused_parameters,
          training.static_graph, !training.bucket_caps.empty(), training.last_bucket_cap};
}

std::vector<Bucket> plan_buckets(const StepWorks& works, const Training& training) {
  check(bucket_refusal(works, training));
  auto contents = !training.buckets.empty()       ? training.buckets
                  : training.parameter_groups > 0 ? group_buckets(works, training.parameter_groups)
                                                  : ddp_buckets(works, training);
  std::vector<Bucket> buckets;
  buckets.reserve(contents.size());
  for (auto& parameters : contents) {
    Bucket& bucket = buckets.emplace_back();
    for (const std::int32_t index : parameters)
      bucket.size += works.gradients[static_cast<std::size_t>(index)].size;
    bucket.parameters = std::move(parameters);
    const std::int32_t first = bucket.parameters.front();
    bucket.sparse = bucket.parameters.size() == 1 && works.gradients[at(first)].sparse;
    if (bucket.sparse)
      bucket.size = works.sparse[at(first)].indices + works.sparse[at(first)].values;
  }
  return buckets;
}

std::size_t buckets_by_caps(const WorkloadGradients& workload, const Training& training) {
  return steady_buckets(known_to_reducer(workload.gradients, training), workload.arrival,
                        bucketing_of(training))
      .size();
}

}  // namespace ddpsim
