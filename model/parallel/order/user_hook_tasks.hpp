#pragma once

#include <vector>

#include "model/parallel/order/hook_groups.hpp"
#include "model/parallel/write/step_builder.hpp"

namespace ddpsim {

/// Writes the tasks of the user's hooks (training.hooks), which every strategy has alike.
class UserHookTasks {
 public:
  explicit UserHookTasks(StepBuilder& step);

  /// How many gradient hooks fire in a backward.
  std::size_t size() const { return groups_.size(); }

  /// Forward hooks behind a layer's forward pass.
  void after_layer(StepBuilder& step, std::size_t layer) const;
  void begin_backward() { groups_.begin(); }
  /// Backward has computed a gradient: the user's hooks come before DDP's. `ready` is called for
  /// each gradient that has met all its hooks.
  void gradient_computed(StepBuilder& step, std::int32_t parameter,
                         const std::function<void(std::int32_t)>& ready);

 private:
  /// A forward hook on a layer, by its place in UserHook::layers.
  struct Module {
    std::int32_t hook = nobody, layer = nobody;
  };

  static program::Action action_of(StepBuilder& step, const HookGroups::Group& of,
                                   std::int32_t parameter);
  static void fire(StepBuilder& step, const HookGroups::Group& group, std::int32_t parameter);
  static void chunks(StepBuilder& step, const Module& module, std::size_t layer);

  HookGroups groups_;
  std::vector<std::vector<Module>> modules_;  ///< [layer], or empty
};

}  // namespace ddpsim
