#include "backend/gloo/user_hooks.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "backend/device/cpu/noise.hpp"
#include "backend/device_error.hpp"
#include "backend/plugin/exit_guard.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t longest_output = 16 << 20;  // values; longer ones begin again

}  // namespace

UserHooks::UserHooks(const Workload& workload, int rank, int ranks, Memory& memory,
                     const Plugins* plugins)
    : workload_(workload),
      rank_(rank),
      ranks_(ranks),
      memory_(memory),
      plugins_(plugins),
      progress_(workload.parameters.size()) {
  for (const Layer& layer : workload.layers) completes_.emplace_back(layer.backward.size());
  for (std::size_t p = 0; p < workload.parameters.size(); ++p) {
    const Parameter& parameter = workload.parameters[p];
    index_of_.emplace(parameter.name, static_cast<std::int32_t>(p));
    completes_[at(parameter.layer)][at(parameter.ready_after)].push_back(
        static_cast<std::int32_t>(p));
  }
}

void UserHooks::begin(const Schedule& schedule) {
  std::fill(progress_.begin(), progress_.end(), Progress{});
  watches_ = std::any_of(schedule.hooks.begin(), schedule.hooks.end(),
                         [](const UserHook& hook) { return hook.kind == UserHookKind::plugin; });
  if (!watches_) return;
  const Plugins none;
  for (const UserHook& hook : schedule.hooks)
    if (hook.kind == UserHookKind::plugin)
      (plugins_ != nullptr ? *plugins_ : none).check_gradient_hook(hook.plugin);
}

void UserHooks::computed(const Task& backward) {
  for (const std::int32_t p : completes_[at(backward.layer)][at(backward.kernel)])
    progress_[at(p)] = {backward.micro_batch, State::complete};
}

void UserHooks::handed_over(const Bucket& bucket) {
  if (!watches_) return;
  for (const std::int32_t p : bucket.parameters)
    if (memory_.gradient(p).data() == memory_.slice(p).data())
      progress_[at(p)].state = State::handed_over;
}

std::string UserHooks::not_ready(std::int32_t parameter, int micro_batch) const {
  const Progress& progress = progress_[at(parameter)];
  if (progress.micro_batch != micro_batch || progress.state == State::coming)
    return fmt::format("is not ready yet in micro-batch {}", micro_batch);
  // Later micro-batches write theirs elsewhere.
  if (progress.state == State::handed_over && micro_batch == 0) return "is being reduced in place";
  return "";
}

void UserHooks::run(const Schedule& schedule, const Task& task) {
  const UserHook& hook = schedule.hooks[at(task.user_hook)];
  if (hook.kind == UserHookKind::chunks) {
    const Bytes output = hook.outputs[at(task.kernel)];
    const std::size_t length = std::min(
        {longest_output, static_cast<std::size_t>(memory_.scratch_size()),
         std::max<std::size_t>(1, static_cast<std::size_t>(output.count) / sizeof(float))});
    if (output_.size() < length) output_.resize(length);
    return pools_.try_emplace(hook.chunks.threads, hook.chunks.threads)
        .first->second.run(
            {.pieces = hook.chunks.count, .output = output, .time = hook.chunks.time},
            {memory_.scratch(), length}, std::span(output_).first(length));
  }
  const std::vector<std::int32_t>& group = hook.groups[at(task.kernel)];
  if (hook.kind == UserHookKind::clip) return clip(group, task.micro_batch, hook.value);
  const std::span<float> values = memory_.written(task.parameter, task.micro_batch);
  switch (hook.kind) {
    case UserHookKind::scale:
      for (float& value : values) value *= static_cast<float>(hook.value);
      return;
    case UserHookKind::noise: {
      const std::uint64_t seed = hook.seed_of(task.parameter);
      return add_noise(values, hook.value, noise_stream(seed, rank_, task.micro_batch));
    }
    case UserHookKind::decay: {
      const std::span<const float> parameter = memory_.parameter(task.parameter);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] += static_cast<float>(hook.value) * parameter[i];
      return;
    }
    case UserHookKind::plugin:
      return call_plugin(hook, task);
    case UserHookKind::clip:
    case UserHookKind::record:
    case UserHookKind::chunks:
      return;
  }
}

void UserHooks::clip(const std::vector<std::int32_t>& group, int micro_batch, double norm) {
  std::vector<std::span<float>> gradients;  // of those that have one
  for (const std::int32_t p : group)
    if (progress_[at(p)].micro_batch == micro_batch)
      gradients.push_back(memory_.written(p, micro_batch));
  double squares = 0;
  for (const std::span<float> gradient : gradients)
    for (const float value : gradient) squares += static_cast<double>(value) * value;
  const double factor = norm / (std::sqrt(squares) + 1e-6);
  if (factor >= 1) return;
  for (const std::span<float> gradient : gradients)
    for (float& value : gradient) value *= static_cast<float>(factor);
}

void UserHooks::call_plugin(const UserHook& hook, const Task& task) {
  const Parameter& parameter = workload_.parameters[at(task.parameter)];
  const std::span<float> values = memory_.written(task.parameter, task.micro_batch);
  ddpsim_gradient gradient{};
  gradient.rank = rank_;
  gradient.ranks = ranks_;
  gradient.micro_batch = task.micro_batch;
  gradient.dimensions = static_cast<std::int32_t>(parameter.shape.size());
  gradient.name = parameter.name.c_str();
  gradient.layer = workload_.layers[at(parameter.layer)].name.c_str();
  gradient.shape = parameter.shape.data();
  gradient.count = static_cast<std::int64_t>(values.size());
  gradient.values = values.data();
  gradient.parameter = memory_.parameter(task.parameter).data();
  const ExitGuard guard("the plugin's hook", hook.plugin);
  const std::string problem =
      call_gradient_hook(*plugins_->gradient_hook(hook.plugin), gradient,
                         [&](const std::string& name) { return readable(name, task.micro_batch); });
  if (!problem.empty())
    throw DeviceError(
        fmt::format("the plugin's hook \"{}\" on {}: {}", hook.plugin, parameter.name, problem));
}

OtherGradient UserHooks::readable(const std::string& name, int micro_batch) const {
  const auto found = index_of_.find(name);
  if (found == index_of_.end()) return {{}, fmt::format("\"{}\", which is none", name)};
  const std::string why = not_ready(found->second, micro_batch);
  if (!why.empty()) return {{}, fmt::format("{}, which {}", name, why)};
  return {memory_.written(found->second, micro_batch), ""};
}

}  // namespace ddpsim
