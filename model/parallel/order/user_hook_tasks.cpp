#include "model/parallel/order/user_hook_tasks.hpp"

#include <stdexcept>

namespace ddpsim {

UserHookTasks::UserHookTasks(StepBuilder& step) {
  const std::vector<UserHook>& hooks = step.training.hooks;
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

/// What a hook does to the gradients it is given together.
program::Action UserHookTasks::action_of(StepBuilder& step, const HookGroups::Group& of,
                                         std::int32_t parameter) {
  const UserHook& hook = step.training.hooks[at(of.hook)];
  std::vector<program::Slice> group;
  for (const std::int32_t each : hook.groups[at(of.group)])
    if (!step.unused(each)) group.push_back(step.memory.computed(each));
  const program::Slice& gradient = step.memory.computed(parameter);
  const program::Slice& weight = step.memory.weight(parameter);
  program::JobMemory& memory = step.writer.memory;
  switch (hook.kind) {
    case UserHookKind::clip:
      return program::Clip{.gradients = memory.list(group), .norm = hook.value};
    case UserHookKind::scale:
      return program::Scale{
          .to = gradient, .from = gradient, .factor = static_cast<float>(hook.value)};
    case UserHookKind::noise:
      return program::Noise{.to = gradient,
                            .from = gradient,
                            .deviation = hook.value,
                            .seed = hook.seed_of(parameter)};
    case UserHookKind::decay:
      return program::Combine{
          .to = gradient, .left = gradient, .right = weight, .b = static_cast<float>(hook.value)};
    case UserHookKind::record:
      return program::Call{.what = program::Call::What::user, .index = of.hook};
    case UserHookKind::plugin:
      return program::Plugin{.code = memory.label(hook.plugin),
                             .parameter = parameter,
                             .weight = weight,
                             .complete = step.complete.listed(),
                             .reads = step.complete.readable(memory),
                             .writes = memory.list({gradient})};
    case UserHookKind::chunks:
      break;
  }
  throw std::logic_error("a hook on layers is none on gradients");
}

void UserHookTasks::fire(StepBuilder& step, const HookGroups::Group& group,
                         std::int32_t parameter) {
  const program::Origin of{.kernel = group.group, .parameter = parameter, .hook = group.hook};
  const program::Action action = action_of(step, group, parameter);
  if (group.work.computes())
    step.writer.kernel_task(Operation::gradient_hook, group.work, action, of);
  else
    step.writer.host_task(Operation::gradient_hook, group.work, action, of);
}

/// A layer's output on host threads. From a GPU it comes and goes over the bus, and the host waits
/// for it.
void UserHookTasks::chunks(StepBuilder& step, const Module& module, std::size_t layer) {
  StepWriter& writer = step.writer;
  const UserHook& hook = step.training.hooks[at(module.hook)];
  Chunks chunks = hook.chunks;
  chunks.output = hook.outputs[at(module.layer)];
  const program::Origin of{
      .layer = static_cast<std::int32_t>(layer), .kernel = module.layer, .hook = module.hook};
  const program::Chunked on_threads{.pieces = chunks.count,
                                    .threads = chunks.threads,
                                    .output = chunks.output,
                                    .time = chunks.time};
  Work kernel;
  kernel.operation = Operation::module_hook;
  kernel.caller = Caller::python_loop;
  if (writer.device.synchronous) {
    kernel.traffic = 2 * chunks.output;
    kernel.known_time = host_time(chunks);
    kernel.hook_calls = 1;
    return writer.kernel_task(Operation::module_hook, kernel, on_threads, of);
  }
  kernel.known_time = chunks.output / chunks.transfer;
  writer.kernel_task(Operation::module_hook, kernel, program::Touch{}, of);
  Work host;
  host.operation = Operation::module_hook;
  host.hook_calls = 1;
  host.host = host_time(chunks);
  writer.host_task(Operation::module_hook, host, on_threads, of);
  writer.depend(writer.last_kernel);
  writer.kernel_task(Operation::module_hook, kernel, program::Touch{}, of);
}

}  // namespace ddpsim
