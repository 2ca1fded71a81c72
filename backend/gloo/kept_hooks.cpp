#include "backend/gloo/kept_hooks.hpp"

#include <optional>

#include "backend/plugin/comm_hook_call.hpp"

namespace ddpsim {
namespace {

/// The user's code that a schedule's comm hook calls, and the type of its payload.
struct PluginCode {
  std::string name;
  DType payload = DType::fp32;
};

std::optional<PluginCode> plugin_of(const Schedule& schedule) {
  PluginCode code;
  for (const Bucket& bucket : schedule.buckets)
    for (const CommStep& step : bucket.steps) {
      if (step.action == CommAction::plugin_before) code.name = step.code;
      if (step.action == CommAction::plugin_reduce) code.payload = step.type;
    }
  if (code.name.empty()) return std::nullopt;
  return code;
}

}  // namespace

HookData* KeptHooks::of(const Schedule& schedule) {
  if (schedule.hook_state.empty()) return nullptr;
  std::vector<std::vector<std::int32_t>> buckets;
  for (const Bucket& bucket : schedule.buckets) buckets.push_back(bucket.parameters);
  for (const Kept& each : kept_)
    if (each.hook_state == schedule.hook_state && each.buckets == buckets) return each.data.get();
  auto data = std::make_unique<HookData>(schedule.hook_seed, rank_, ranks_);
  if (const auto code = plugin_of(schedule)) {
    (plugins_ != nullptr ? *plugins_ : Plugins()).check_comm_hook(code->name, code->payload);
    data->set_plugin({[this, name = code->name](const float* bucket, std::int64_t count,
                                                std::span<std::byte> payload) {
                        const auto size = static_cast<std::size_t>(count);
                        call_before(*plugins_, name, {bucket, size}, ranks_, payload);
                      },
                      [this, name = code->name](float* bucket, std::int64_t count,
                                                std::span<const std::byte> payload) {
                        const auto size = static_cast<std::size_t>(count);
                        call_after(*plugins_, name, payload, ranks_, {bucket, size});
                      }});
  }
  kept_.push_back({schedule.hook_state, std::move(buckets), std::move(data)});
  return kept_.back().data.get();
}

}  // namespace ddpsim
