#include "model/parallel/order/hook_groups.hpp"

#include <algorithm>
#include <utility>

namespace ddpsim {
namespace {

/// The kernel of a hook on `size` bytes of gradient, if it has one, and the call of the hook.
Work called(const UserHook& hook, Bytes size) {
  Work work = work_of(priced_as(hook.kind), kernel_of(hook, size), Caller::python_loop);
  work.hook_calls = 1;
  work.host = hook.host;
  return work;
}

}  // namespace

HookGroups::HookGroups(const StepWorks& works, const std::vector<UserHook>& hooks) {
  const std::size_t parameters = works.parameters();
  std::vector<std::size_t> arrived(parameters);
  for (std::size_t i = 0; i < works.arrival.size(); ++i) arrived[at(works.arrival[i])] = i;
  std::vector<bool> computed(parameters, false);
  for (const auto& layer : works.layers)
    for (const auto& kernel : layer.completes)
      for (const std::int32_t index : kernel) computed[at(index)] = true;
  met_.resize(parameters);
  next_met_.resize(parameters);
  for (std::size_t h = 0; h < hooks.size(); ++h)
    for (std::size_t g = 0; g < hooks[h].groups.size(); ++g) {
      Group group;
      group.hook = static_cast<std::int32_t>(h);
      group.group = static_cast<std::int32_t>(g);
      for (const std::int32_t index : hooks[h].groups[g])  // nobody waits for what never comes
        if (computed[at(index)]) group.members.push_back(index);
      if (group.members.empty()) continue;
      std::sort(group.members.begin(), group.members.end(),
                [&](std::int32_t a, std::int32_t b) { return arrived[at(a)] < arrived[at(b)]; });
      Bytes size;
      for (const std::int32_t index : group.members) {
        size += works.gradients[at(index)].size;
        met_[at(index)].push_back(groups_.size());
      }
      group.work = called(hooks[h], size);
      groups_.push_back(std::move(group));
    }
}

void HookGroups::begin() {
  for (Group& group : groups_) group.missing = group.members.size();
  std::fill(next_met_.begin(), next_met_.end(), 0);
}

void HookGroups::computed(std::int32_t index,
                          const std::function<void(const Group& group, std::int32_t index)>& fire,
                          const std::function<void(std::int32_t index)>& ready) {
  if (met_.empty()) return ready(index);
  const std::vector<std::size_t>& met = met_[at(index)];
  std::size_t& next = next_met_[at(index)];
  while (next < met.size()) {
    Group& group = groups_[met[next]];
    if (--group.missing > 0) return;
    fire(group, index);
    if (group.members.size() == 1) {
      ++next;
      continue;
    }
    for (const std::int32_t member : group.members) {
      ++next_met_[at(member)];
      computed(member, fire, ready);
    }
    return;
  }
  ready(index);
}

}  // namespace ddpsim
