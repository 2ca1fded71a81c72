#include "backend/job/placement.hpp"

namespace ddpsim {
std::vector<std::int64_t> gradient_offsets(const Workload& workload, std::int64_t alignment) {
  std::vector<std::int64_t> offsets{0};
  for (const Parameter& parameter : workload.parameters) {
    const std::int64_t end = offsets.back() + parameter.size().count;
    offsets.push_back((end + alignment - 1) / alignment * alignment);
  }
  return offsets;
}

Placement place(const Schedule& schedule, const Workload& workload,
                const std::vector<std::int64_t>& offsets) {
  std::vector<char> filled(schedule.buckets.size(), 0), emptied(schedule.buckets.size(), 0);
  for (const Task& task : schedule.tasks) {
    if (task.bucket == nobody) continue;
    const bool zeros = task.parameter != nobody && workload.parameters[at(task.parameter)].unused;
    if ((task.operation == Operation::copy_in && !zeros) ||
        task.operation == Operation::concatenate)
      filled[at(task.bucket)] = 1;
    if (task.operation == Operation::copy_out) emptied[at(task.bucket)] = 1;
  }
  Placement placement;
  for (std::size_t p = 0; p < workload.parameters.size(); ++p)
    placement.gradients.push_back({false, offsets[p]});
  placement.slices.resize(workload.parameters.size());
  std::int64_t offset = 0;
  for (std::size_t b = 0; b < schedule.buckets.size(); ++b) {
    const auto& members = schedule.buckets[b].parameters;
    if (schedule.buckets[b].in_place) {
      placement.buckets.push_back(placement.gradients[at(members.front())]);
      placement.slices[at(members.front())] = placement.buckets.back();
      continue;
    }
    placement.buckets.push_back({true, offset});
    for (const std::int32_t p : members) {
      placement.slices[at(p)] = {true, offset};
      if (!filled[b] || !emptied[b]) placement.gradients[at(p)] = placement.slices[at(p)];
      offset += workload.parameters[at(p)].size().count;
    }
  }
  return placement;
}

}  // namespace ddpsim
