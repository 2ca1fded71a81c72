#include "model/parallel/policy/iteration.hpp"

#include <algorithm>

namespace ddpsim {
namespace {

int rebuilding_iteration(const Training& training) {
  return training.static_graph ? 3 : 2;
}

/// The last iteration in which DDP itself does something that it will not do again.
int last_special(const Training& training) {
  if (training.strategy != Strategy::bucketed) return 0;
  if (rebuilds(training) || is_zero_step(training.comm_hook.kind))
    return rebuilding_iteration(training);
  const bool views = training.gradient_as_bucket_view && training.pytorch == PyTorch::v1_13;
  return training.static_graph || views ? 1 : 0;
}

/// Iterations since the first local one of post_local_sgd; negative before it.
int local_iterations(const Training& training, int iteration) {
  return iteration - 1 - training.comm_hook.post_local_sgd.start_iteration;
}

}  // namespace

bool rebuilds(const Training& training) {
  return training.wraps_buckets() && training.buckets.empty() && training.parameter_groups == 0 &&
         !never_rebuilt(training.find_unused_parameters, training.static_graph);
}

bool before_rebuild(const Training& training) {
  return training.iteration > 0 && training.iteration < rebuilding_iteration(training);
}

bool rebuilds_now(const Training& training) {
  return rebuilds(training) && training.iteration == rebuilding_iteration(training);
}

bool delays_all_reduce(const Training& training) {
  return training.wraps_buckets() && training.static_graph && training.iteration == 1;
}

bool views_survive(const Training& training) {
  return training.gradient_as_bucket_view && training.pytorch == PyTorch::v1_13 &&
         training.iteration != 1;
}

bool averages_models(const Training& training) {
  if (training.strategy != Strategy::bucketed ||
      training.comm_hook.kind != CommHookKind::post_local_sgd || training.iteration == 0)
    return false;
  const int local = local_iterations(training, training.iteration);
  return local >= 0 && local % training.comm_hook.post_local_sgd.period == 0;
}

std::optional<ModelAveraging> model_averaging(Training training) {
  const PostLocalSgd& state = training.comm_hook.post_local_sgd;
  training.iteration = state.start_iteration + 1;
  if (!averages_models(training)) return std::nullopt;
  return ModelAveraging{training.iteration, state.period};
}

bool before_zero_steps(const Training& training) {
  return is_zero_step(training.comm_hook.kind) && training.iteration > 0 &&
         training.iteration <= rebuilding_iteration(training);
}

int first_like(const Training& training, int iteration) {
  if (training.strategy != Strategy::bucketed) return 0;
  const int special = last_special(training);
  if (iteration <= special) return iteration;
  const int steady = special + 1;
  switch (training.comm_hook.kind) {
    case CommHookKind::powersgd:
    case CommHookKind::batched_powersgd: {
      const int start = training.comm_hook.powersgd.start_iteration;
      if (iteration <= start) return steady;
      return iteration == start + 1 ? iteration : std::max(steady, start + 2);
    }
    case CommHookKind::post_local_sgd: {
      const int start = training.comm_hook.post_local_sgd.start_iteration;
      const int period = training.comm_hook.post_local_sgd.period;
      const int local = local_iterations(training, iteration);
      if (local < 0) return steady;
      const int first = std::max(steady, start + 1);
      const int beyond = local_iterations(training, first) % period;  // the last that averages
      if (local % period == 0) return first + (beyond == 0 ? 0 : period - beyond);
      return beyond == 0 ? first + 1 : first;
    }
    case CommHookKind::none:
    case CommHookKind::allreduce:
    case CommHookKind::noop:
    case CommHookKind::fp16_compress:
    case CommHookKind::bf16_compress:
    case CommHookKind::quantization_pertensor:
    case CommHookKind::quantization_perchannel:
    case CommHookKind::optimizer_overlap:
    case CommHookKind::zero_step:
    case CommHookKind::zero_step_interleaved:
    case CommHookKind::steps:
    case CommHookKind::plugin:
      return steady;
  }
  return steady;
}

std::string phase_label(const Training& training) {
  std::string label;
  const auto add = [&](const char* what) {
    if (!label.empty()) label += ", ";
    label += what;
  };
  if (training.iteration == 0 || training.strategy != Strategy::bucketed) return "steady";
  if (delays_all_reduce(training)) add("everything after backward");
  if (rebuilds(training) && before_rebuild(training)) add("initial buckets");
  if (rebuilds_now(training)) add("buckets rebuilt");
  const bool powersgd = training.comm_hook.kind == CommHookKind::powersgd ||
                        training.comm_hook.kind == CommHookKind::batched_powersgd;
  const int start = training.comm_hook.powersgd.start_iteration;
  if (powersgd && training.iteration <= start) add("not compressed yet");
  if (powersgd && training.iteration == start + 1) add("first compressed");
  if (before_zero_steps(training)) add("parameters not updated yet");
  if (training.comm_hook.kind == CommHookKind::post_local_sgd) {
    if (local_iterations(training, training.iteration) < 0) add("all ranks reduce");
    if (averages_models(training)) add("models averaged");
  }
  return label.empty() ? "steady" : label;
}

}  // namespace ddpsim
