#include "model/parallel/comm_hook.hpp"

#include <fmt/format.h>

namespace ddpsim {

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

MatrixShape matrix_of(const std::vector<std::int64_t>& shape) {
  MatrixShape matrix{shape.empty() ? 1 : shape.front(), 1};
  for (std::size_t d = 1; d < shape.size(); ++d) matrix.columns *= shape[d];
  return matrix;
}

}  // namespace ddpsim
