#include "model/parallel/comm_hook.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace ddpsim {
namespace {

constexpr std::array facts{
    CommHookFacts{CommHookKind::none, "N e", "1 all-reduce", "c10d/reducer.cpp"},
    CommHookFacts{CommHookKind::allreduce, "N e", "1 all-reduce",
                  "ddp_comm_hooks/default_hooks.py allreduce_hook"},
    CommHookFacts{CommHookKind::noop, "0", "none", "ddp_comm_hooks/debugging_hooks.py noop_hook"},
    CommHookFacts{CommHookKind::fp16_compress, "2 N", "1 all-reduce",
                  "ddp_comm_hooks/default_hooks.py fp16_compress_hook"},
    CommHookFacts{CommHookKind::bf16_compress, "2 N", "1 all-reduce",
                  "ddp_comm_hooks/default_hooks.py bf16_compress_hook"},
    CommHookFacts{CommHookKind::powersgd, "e (U + sum r (n + m))",
                  "3 all-reduces, one after another",
                  "ddp_comm_hooks/powerSGD_hook.py powerSGD_hook"},
    CommHookFacts{CommHookKind::batched_powersgd, "2 e r ceil(sqrt N)",
                  "2 all-reduces, one after another",
                  "ddp_comm_hooks/powerSGD_hook.py batched_powerSGD_hook"},
    CommHookFacts{CommHookKind::quantization_pertensor, "8 + N", "2 all-gathers, one after another",
                  "ddp_comm_hooks/quantization_hooks.py quantization_pertensor_hook"},
    CommHookFacts{CommHookKind::quantization_perchannel, "520 (floor(N / 512) + 1)",
                  "2 all-gathers, one after another",
                  "ddp_comm_hooks/quantization_hooks.py quantization_perchannel_hook"},
    CommHookFacts{CommHookKind::post_local_sgd, "N e", "1 all-reduce, of all or of a subgroup",
                  "ddp_comm_hooks/post_localSGD_hook.py post_localSGD_hook"},
    CommHookFacts{CommHookKind::optimizer_overlap, "N e", "1 all-reduce",
                  "ddp_comm_hooks/optimizer_overlap_hooks.py _apply_optim_in_backward_hook"},
    CommHookFacts{CommHookKind::zero_step, "2 N e",
                  "1 all-reduce, 1 broadcast behind all all-reduces",
                  "ddp_comm_hooks/ddp_zero_hook.py hook_with_zero_step"},
    CommHookFacts{CommHookKind::zero_step_interleaved, "2 N e",
                  "1 all-reduce, 1 broadcast behind it",
                  "ddp_comm_hooks/ddp_zero_hook.py hook_with_zero_step_interleaved"},
    CommHookFacts{CommHookKind::steps, "as written", "as written", "the scenario"},
    CommHookFacts{CommHookKind::plugin, "N x 2 or 4, as it says", "1 all-reduce",
                  "the plugin, see backend/plugin/ddpsim_plugin.h"},
};

}  // namespace

std::string_view name_of(CommHookKind kind) {
  switch (kind) {
    case CommHookKind::none:
      return "none";
    case CommHookKind::allreduce:
      return "allreduce";
    case CommHookKind::noop:
      return "noop";
    case CommHookKind::fp16_compress:
      return "fp16_compress";
    case CommHookKind::bf16_compress:
      return "bf16_compress";
    case CommHookKind::powersgd:
      return "powersgd";
    case CommHookKind::batched_powersgd:
      return "batched_powersgd";
    case CommHookKind::quantization_pertensor:
      return "quantization_pertensor";
    case CommHookKind::quantization_perchannel:
      return "quantization_perchannel";
    case CommHookKind::post_local_sgd:
      return "post_local_sgd";
    case CommHookKind::optimizer_overlap:
      return "optimizer_overlap";
    case CommHookKind::zero_step:
      return "zero_step";
    case CommHookKind::zero_step_interleaved:
      return "zero_step_interleaved";
    case CommHookKind::steps:
      return "steps";
    case CommHookKind::plugin:
      return "plugin";
  }
  return "?";
}

std::string_view name_of(OwnStep::Kind kind) {
  switch (kind) {
    case OwnStep::Kind::cast:
      return "cast";
    case OwnStep::Kind::scale:
      return "scale";
    case OwnStep::Kind::topk:
      return "topk";
    case OwnStep::Kind::all_reduce:
      return "all_reduce";
    case OwnStep::Kind::reduce_scatter:
      return "reduce_scatter";
    case OwnStep::Kind::all_gather:
      return "all_gather";
    case OwnStep::Kind::broadcast:
      return "broadcast";
    case OwnStep::Kind::kernel:
      return "kernel";
  }
  return "?";
}

std::string label(const CommHook& hook) {
  std::string text(name_of(hook.kind));
  if (hook.kind == CommHookKind::powersgd || hook.kind == CommHookKind::batched_powersgd)
    text += fmt::format(" rank {}", hook.powersgd.rank);
  if (hook.kind == CommHookKind::plugin) text = fmt::format("plugin {}", hook.plugin);
  for (auto type = hook.wrappers.rbegin(); type != hook.wrappers.rend(); ++type)
    text = fmt::format("{}_compress_wrapper({})", name_of(*type), text);
  return text;
}

std::string state_of(const CommHook& hook) {
  if (!hook) return "";
  const PowerSgd& powersgd = hook.powersgd;
  const PostLocalSgd& local = hook.post_local_sgd;
  std::string text =
      fmt::format("{}; {} {} {} {} {} {} {}; {} {} {} {}; {} {}", label(hook), powersgd.rank,
                  powersgd.start_iteration, powersgd.min_compression_rate, powersgd.error_feedback,
                  powersgd.warm_start, powersgd.orthogonalization_epsilon, powersgd.seed,
                  local.start_iteration, local.subgroup, local.gradient_allreduce, local.period,
                  hook.plugin, name_of(hook.plugin_type));
  for (const OwnStep& step : hook.steps)
    text += fmt::format("; {} {} {} {} {} {} {} {}", name_of(step.kind), name_of(step.type),
                        step.factor ? fmt::format("{}", *step.factor) : "1/ranks", step.share,
                        step.name, step.passes, step.launches, step.communicator);
  return text;
}

std::span<const CommHookFacts> comm_hook_facts() {
  return facts;
}

std::int64_t CommBucket::elements() const {
  std::int64_t sum = 0;
  for (const MatrixShape& each : gradients) sum += each.rows * each.columns;
  return sum;
}

MatrixShape matrix_of(const std::vector<std::int64_t>& shape) {
  MatrixShape matrix{shape.empty() ? 1 : shape.front(), 1};
  for (std::size_t d = 1; d < shape.size(); ++d) matrix.columns *= shape[d];
  return matrix;
}

int powersgd_rank(const PowerSgd& state, MatrixShape matrix) {
  const std::int64_t n = matrix.rows, m = matrix.columns;
  const std::int64_t rank = std::min({n, m, static_cast<std::int64_t>(state.rank)});
  const double compressed = static_cast<double>((n + m) * rank) * state.min_compression_rate;
  return compressed < static_cast<double>(n * m) ? static_cast<int>(rank) : 0;
}

std::vector<LowRank> low_rank_gradients(const PowerSgd& state,
                                        std::span<const MatrixShape> gradients) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> group_of;
  std::vector<std::vector<LowRank>> groups;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto [rows, columns] = gradients[i];
    const int rank = powersgd_rank(state, gradients[i]);
    if (rank == 0) continue;
    const auto [group, first] = group_of.try_emplace({rows, columns}, groups.size());
    if (first) groups.emplace_back();
    groups[group->second].push_back({static_cast<std::int32_t>(i), rows, columns, rank});
  }
  std::vector<LowRank> all;
  for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

std::vector<LowRank> low_rank_matrices(const CommHook& hook, const CommBucket& bucket) {
  if (hook.kind == CommHookKind::powersgd)
    return low_rank_gradients(hook.powersgd, bucket.gradients);
  if (hook.kind != CommHookKind::batched_powersgd) return {};
  const std::int64_t side = batched_side(bucket.elements());
  return {{nobody, side, side, hook.powersgd.rank}};
}

bool result_in_bucket(const CommHook& hook) {
  return hook.kind != CommHookKind::quantization_pertensor &&
         hook.kind != CommHookKind::quantization_perchannel;
}

}  // namespace ddpsim
