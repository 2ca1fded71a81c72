#include "model/parallel/user_hook.hpp"

#include <fmt/format.h>

namespace ddpsim {

std::string_view name_of(UserHookKind kind) {
  constexpr std::array<std::string_view, all_user_hooks.size()> names{
      "clip", "scale", "noise", "decay", "record", "chunks", "plugin"};
  return names[static_cast<std::size_t>(kind)];
}

std::string label(const UserHook& hook) {
  switch (hook.kind) {
    case UserHookKind::clip:
    case UserHookKind::scale:
    case UserHookKind::noise:
    case UserHookKind::decay:
      return fmt::format("{} {:g}", name_of(hook.kind), hook.value);
    case UserHookKind::chunks:
      return fmt::format("chunks {} on {} threads", hook.chunks.count, hook.chunks.threads);
    case UserHookKind::plugin:
      return "plugin " + hook.plugin;
    case UserHookKind::record:
      return "record";
  }
  return "?";
}

Duration host_time(const Chunks& chunks) {
  const int rounds = (chunks.count + chunks.threads - 1) / chunks.threads;
  return 2 * chunks.output / chunks.host_memory +
         scaled(chunks.time, static_cast<double>(rounds) / chunks.count) +
         chunks.count * chunk_handover;
}

Operation priced_as(UserHookKind kind) {
  switch (kind) {
    case UserHookKind::noise:
      return Operation::draw;
    case UserHookKind::plugin:
      return Operation::own_kernel;
    case UserHookKind::chunks:
      return Operation::module_hook;
    case UserHookKind::clip:
    case UserHookKind::scale:
    case UserHookKind::decay:
    case UserHookKind::record:
      return Operation::gradient_hook;
  }
  return Operation::gradient_hook;
}

Kernel kernel_of(const UserHook& hook, Bytes size) {
  Kernel kernel;
  switch (hook.kind) {
    case UserHookKind::clip:  // norm; factor; multiplication
      kernel.traffic = 3 * size;
      kernel.launches = 3;
      break;
    case UserHookKind::scale:
      kernel.traffic = 2 * size;
      break;
    case UserHookKind::noise:
      kernel.traffic = 4 * size;
      kernel.launches = 2;
      break;
    case UserHookKind::decay:
      kernel.traffic = 3 * size;
      break;
    case UserHookKind::plugin:
      kernel.traffic =
          Bytes{static_cast<std::int64_t>(hook.passes * static_cast<double>(size.count))};
      kernel.launches = hook.launches;
      break;
    case UserHookKind::record:
    case UserHookKind::chunks:
      break;
  }
  return kernel;
}

bool matches(std::string_view pattern, std::string_view text) {
  // Only the latest star needs to be reconsidered: an earlier one would match no more.
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::optional<Bytes> output_of(const Layer& layer) {
  for (std::size_t k = layer.forward.size(); k-- > 0;)
    if (const auto& gemm = layer.forward[k].gemm)
      return Bytes{gemm->m * gemm->n * gemm->batch * size_of(layer.forward[k].type).count};
  if (layer.forward.empty() || layer.forward.back().traffic.count < 2) return std::nullopt;
  return Bytes{layer.forward.back().traffic.count / 2};
}

std::vector<UserHookFacts> user_hook_facts() {
  return {{UserHookKind::clip, "{layer: \"blocks.3*\", norm: 1}",
           "scales a layer's gradients (or a parameter's) down to a norm; holds them back for it"},
          {UserHookKind::scale, "{parameter: \"*.bias\", factor: 0.5}", "multiplies the gradient"},
          {UserHookKind::noise, "{parameter: \"*\", deviation: 0.01, seed: 1}",
           "adds normal noise, another on every rank"},
          {UserHookKind::decay, "{parameter: \"*\", rate: 0.01}", "adds rate x parameter"},
          {UserHookKind::record, "{parameter: \"*\"}", "notes when it fired (--hooks-log)"},
          {UserHookKind::chunks, "{layer: head, count: 4, threads: 4}",
           "a layer's output in chunks on host threads, joined before the next layer"},
          {UserHookKind::plugin, "{name: my_hook, parameter: \"*\"}",
           "your own code (--plugin; backend/plugin/ddpsim_plugin.h)"}};
}

}  // namespace ddpsim
