#include "model/parallel/hooks/comm_hooks.hpp"

#include <algorithm>
#include <array>

namespace ddpsim {
namespace {

constexpr std::array rows{
    CommHookRow{CommHookKind::none, "none", write_allreduce, "N e", "1 all-reduce",
                "c10d/reducer.cpp"},
    CommHookRow{CommHookKind::allreduce, "allreduce", write_allreduce, "N e", "1 all-reduce",
                "ddp_comm_hooks/default_hooks.py allreduce_hook"},
    CommHookRow{CommHookKind::noop, "noop", nullptr, "0", "none",
                "ddp_comm_hooks/debugging_hooks.py noop_hook"},
    CommHookRow{CommHookKind::fp16_compress, "fp16_compress", write_fp16_compress, "2 N",
                "1 all-reduce", "ddp_comm_hooks/default_hooks.py fp16_compress_hook"},
    CommHookRow{CommHookKind::bf16_compress, "bf16_compress", write_bf16_compress, "2 N",
                "1 all-reduce", "ddp_comm_hooks/default_hooks.py bf16_compress_hook"},
    CommHookRow{CommHookKind::powersgd, "powersgd", write_powersgd, "e (U + sum r (n + m))",
                "3 all-reduces, one after another",
                "ddp_comm_hooks/powerSGD_hook.py powerSGD_hook"},
    CommHookRow{CommHookKind::batched_powersgd, "batched_powersgd", write_batched_powersgd,
                "2 e r ceil(sqrt N)", "2 all-reduces, one after another",
                "ddp_comm_hooks/powerSGD_hook.py batched_powerSGD_hook"},
    CommHookRow{CommHookKind::quantization_pertensor, "quantization_pertensor",
                write_quantization_pertensor, "8 + N", "2 all-gathers, one after another",
                "ddp_comm_hooks/quantization_hooks.py quantization_pertensor_hook",
                HookResult::elsewhere},
    CommHookRow{CommHookKind::quantization_perchannel, "quantization_perchannel",
                write_quantization_perchannel, "520 (floor(N / 512) + 1)",
                "2 all-gathers, one after another",
                "ddp_comm_hooks/quantization_hooks.py quantization_perchannel_hook",
                HookResult::elsewhere},
    CommHookRow{CommHookKind::post_local_sgd, "post_local_sgd", write_post_local_sgd, "N e",
                "1 all-reduce, of all or of a subgroup",
                "ddp_comm_hooks/post_localSGD_hook.py post_localSGD_hook"},
    CommHookRow{CommHookKind::optimizer_overlap, "optimizer_overlap", write_optimizer_overlap,
                "N e", "1 all-reduce",
                "ddp_comm_hooks/optimizer_overlap_hooks.py _apply_optim_in_backward_hook",
                HookResult::parameters},
    CommHookRow{CommHookKind::zero_step, "zero_step", write_zero_step, "2 N e",
                "1 all-reduce, 1 broadcast behind all all-reduces",
                "ddp_comm_hooks/ddp_zero_hook.py hook_with_zero_step", HookResult::parameters},
    CommHookRow{CommHookKind::zero_step_interleaved, "zero_step_interleaved",
                write_zero_step_interleaved, "2 N e", "1 all-reduce, 1 broadcast behind it",
                "ddp_comm_hooks/ddp_zero_hook.py hook_with_zero_step_interleaved",
                HookResult::parameters},
    CommHookRow{CommHookKind::steps, "steps", write_own_steps, "as written", "as written",
                "the scenario"},
    CommHookRow{CommHookKind::plugin, "plugin", write_plugin, "N x 2 or 4, as it says",
                "1 all-reduce", "the plugin, see backend/plugin/ddpsim_plugin.h"},
};
static_assert(std::ranges::equal(rows, all_comm_hooks, {}, &CommHookRow::kind));

}  // namespace

std::span<const CommHookRow> comm_hooks() {
  return rows;
}

const CommHookRow& row_of(CommHookKind kind) {
  return rows[static_cast<std::size_t>(kind)];
}

std::string_view name_of(CommHookKind kind) {
  return row_of(kind).name;
}

bool updates_parameters(CommHookKind kind) {
  return row_of(kind).result == HookResult::parameters;
}

bool works_on_buckets(const CommHook& hook) {
  return hook && (row_of(hook.kind).write != nullptr || !hook.wrappers.empty());
}

std::vector<HookTask> tasks_of(program::JobMemory& memory, const CommHook& hook,
                               const HookedBucket& bucket, const HookCall& call) {
  if (!works_on_buckets(hook)) return {};
  HookWriter writer(memory, hook, bucket, call);
  for (const DType wrapper : hook.wrappers) writer.cast(wrapper);
  if (row_of(hook.kind).write != nullptr) row_of(hook.kind).write(writer);
  writer.cast_back();
  return std::move(writer.tasks);
}

bool computes_aside(std::span<const HookTask> tasks) {
  const auto first = std::ranges::find_if(tasks, &HookTask::is_collective);
  return std::any_of(first, tasks.end(), [](const HookTask& task) {
    return !task.is_collective() && !task.in_last && task.work.operation != Operation::synchronize;
  });
}

}  // namespace ddpsim
