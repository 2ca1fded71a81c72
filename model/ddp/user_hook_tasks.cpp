#include "model/ddp/user_hook_tasks.hpp"

namespace ddpsim {

UserHookTasks::UserHookTasks(StepBuilder& step) {
  const std::vector<UserHook>& hooks = step.training.hooks;
  step.writer.schedule.hooks = hooks;
  if (hooks.empty()) return;
  groups_ = HookGroups(step.works, hooks);
  modules_.resize(step.works.layers.size());
  for (std::size_t h = 0; h < hooks.size(); ++h)
    for (std::size_t l = 0; l < hooks[h].layers.size(); ++l)
      modules_[at(hooks[h].layers[l])].push_back(
          {static_cast<std::int32_t>(h), static_cast<std::int32_t>(l)});
}

void UserHookTasks::after_layer(StepBuilder& step, std::size_t layer) const {
  if (modules_.empty()) return;
  for (const Module& module : modules_[layer]) chunks(step, module, layer);
}

void UserHookTasks::gradient_computed(StepBuilder& step, std::int32_t parameter,
                                      const std::function<void(std::int32_t)>& ready) {
  groups_.computed(
      parameter,
      [&](const HookGroups::Group& group, std::int32_t last) { fire(step, group, last); }, ready);
}

void UserHookTasks::fire(StepBuilder& step, const HookGroups::Group& group,
                         std::int32_t parameter) {
  ScheduleWriter& writer = step.writer;
  Task& task = group.work.computes()
                   ? writer.kernel_task(Operation::gradient_hook, writer.number_of(group.work))
                   : writer.host_task(Operation::gradient_hook, group.work);
  task.user_hook = group.hook;
  task.kernel = group.group;
  task.parameter = parameter;
}

/// A layer's output on host threads. From a GPU it comes and goes over the bus, and the host waits
/// for it.
void UserHookTasks::chunks(StepBuilder& step, const Module& module, std::size_t layer) {
  ScheduleWriter& writer = step.writer;
  const UserHook& hook = writer.schedule.hooks[at(module.hook)];
  Chunks chunks = hook.chunks;
  chunks.output = hook.outputs[at(module.layer)];
  const auto mark = [&](Task& task) {
    task.user_hook = module.hook;
    task.layer = static_cast<std::int32_t>(layer);
    task.kernel = module.layer;
  };
  Work kernel;
  kernel.operation = Operation::module_hook;
  kernel.caller = Caller::python_loop;
  if (writer.device.synchronous) {
    kernel.traffic = 2 * chunks.output;
    kernel.known_time = host_time(chunks);
    kernel.hook_calls = 1;
    return mark(writer.kernel_task(Operation::module_hook, writer.number_of(kernel)));
  }
  kernel.known_time = chunks.output / chunks.transfer;
  const std::uint32_t copy = writer.number_of(kernel);
  mark(writer.kernel_task(Operation::module_hook, copy));
  Work on_threads;
  on_threads.operation = Operation::module_hook;
  on_threads.hook_calls = 1;
  on_threads.host = host_time(chunks);
  Task& work = writer.host_task(Operation::module_hook, on_threads);
  work.host_waits = true;
  writer.depend(work, writer.last_kernel);
  mark(work);
  mark(writer.kernel_task(Operation::module_hook, copy));
}

}  // namespace ddpsim
