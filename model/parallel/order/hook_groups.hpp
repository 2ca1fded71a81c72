#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/parallel/user_hook.hpp"
#include "model/parallel/write/step_works.hpp"

namespace ddpsim {

/// Which of the user's gradient hooks a gradient meets on its way to DDP's own, and when they fire.
class HookGroups {
 public:
  /// A hook on gradients that it is given together.
  struct Group {
    std::int32_t hook = nobody, group = nobody;  ///< index into the hooks, into UserHook::groups
    std::vector<std::int32_t> members;           ///< in order of arrival
    Work work;                                   ///< its kernel, if it has one, and the call
    std::size_t missing = 0;                     ///< members it waits for, in this backward
  };

  HookGroups() = default;
  /// What each hook does, and which of them a gradient meets, in the order given.
  HookGroups(const StepWorks& works, const std::vector<UserHook>& hooks);

  std::size_t size() const { return groups_.size(); }

  /// A backward begins: nothing has fired. To be called before the first `computed` of each.
  void begin();

  /// Backward has computed gradient `index`. A hook on several gradients holds back those that come
  /// first until it has run on all; `fire` is called for each group with the gradient that
  /// completed it, `ready` for each gradient that has met all its hooks.
  void computed(std::int32_t index,
                const std::function<void(const Group& group, std::int32_t index)>& fire,
                const std::function<void(std::int32_t index)>& ready);

 private:
  std::vector<Group> groups_;
  std::vector<std::vector<std::size_t>> met_;  ///< [parameter] groups it meets, in order; or empty
  std::vector<std::size_t> next_met_;          ///< [parameter]
};

}  // namespace ddpsim
