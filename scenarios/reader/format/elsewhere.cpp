#include "scenarios/reader/format/elsewhere.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "scenarios/reader/format/format.hpp"
#include "scenarios/reader/format/suits.hpp"
#include "scenarios/reader/text/quantity_text.hpp"

namespace ddpsim {
namespace {

/// What others have a key for, and we do not.
struct Word {
  std::string_view name, answer;
};
constexpr std::string_view no_time = "it does not change how long a step takes: leave it out";
constexpr std::string_view zero_hooks =
    "ZeRO is a strategy: write training.strategy: zero1, zero2 or zero3, and options of DeepSpeed "
    "and Megatron-LM under training.zero1, zero2 or zero3";
constexpr std::string_view sharded =
    "PyTorch 2's fully_shard is a strategy: write training.strategy: fsdp";
constexpr std::string_view not_modelled = "it is not modelled: leave it out";
constexpr std::string_view checkpoints =
    "of a transformer of the catalogue write workload.activation_checkpointing; a described model "
    "has its checkpoints in its description";
constexpr std::string_view ready_data = "data loading is not modelled: leave it out";
constexpr std::string_view synchronised_norms =
    "a described model sends them itself: convert it (SyncBatchNorm.convert_sync_batchnorm), "
    "`ddpsim describe` it, and leave this out";
constexpr std::string_view compiled =
    "compilation is not modelled: `ddpsim describe --fused` bounds what a compiler does; leave "
    "this out";
constexpr std::string_view ddp_overlaps =
    "overlap is a strategy here: write strategy: bucketed where gradients are sent during the "
    "backward pass, strategy: flat where they are sent behind it";
constexpr std::string_view gradients_as_stored =
    "gradients are sent in the format of their parameters: write workload.dtype, or a comm hook "
    "that casts, such as training.comm_hook: bf16_compress";
constexpr std::string_view divided =
    "who divides does not change how long a step takes, unless the collective itself does: write "
    "training.average";
constexpr std::string_view checks = "checks are not modelled: leave it out";
constexpr std::array words{
    Word{"lr", no_time},
    Word{"learning_rate", no_time},
    Word{"lr_scheduler", no_time},
    Word{"lr_scheduler_type", no_time},
    Word{"warmup_steps", no_time},
    Word{"weight_decay", no_time},
    Word{"betas", no_time},
    Word{"epochs", no_time},
    Word{"num_train_epochs", no_time},
    Word{"max_epochs", no_time},
    Word{"max_steps", no_time},
    Word{"num_workers", ready_data},
    Word{"dataloader_num_workers", ready_data},
    Word{"dataloader_pin_memory", ready_data},
    Word{"dataloader_prefetch_factor", ready_data},
    Word{"dispatch_batches", ready_data},
    Word{"split_batches", ready_data},
    Word{"sync_batchnorm", synchronised_norms},
    Word{"convert_sync_batchnorm", synchronised_norms},
    Word{"sync_bn", synchronised_norms},
    Word{"torch_compile", compiled},
    Word{"torch_compile_backend", compiled},
    Word{"torch_compile_mode", compiled},
    Word{"dynamo_backend", compiled},
    Word{"dynamo_config", compiled},
    Word{"compile", compiled},
    Word{"jit", compiled},
    Word{"overlap_comm", ddp_overlaps},
    Word{"overlap_grad_reduce", ddp_overlaps},
    Word{"communication_data_type", gradients_as_stored},
    Word{"grad_reduce_in_fp32", gradients_as_stored},
    Word{"accumulate_allreduce_grads_in_fp32", gradients_as_stored},
    Word{"fp32_allreduce", gradients_as_stored},
    Word{"prescale_gradients", divided},
    Word{"gradient_predivide_factor", divided},
    Word{"gradient_average", divided},
    Word{"check_for_nan_in_grad", checks},
    Word{"check_for_nan_in_loss_and_grad", checks},
    Word{"detect_anomaly", checks},
    Word{"ddp_timeout", no_time},
    Word{"ddp_backend", "the collectives are those of the cluster: write cluster.collectives"},
    Word{"process_group_backend",
         "the collectives are those of the cluster: write cluster.collectives"},
    Word{"limit_train_batches", no_time},
    Word{"log_every_n_steps", no_time},
    Word{"logging_steps", no_time},
    Word{"eval_steps", no_time},
    Word{"save_steps", no_time},
    Word{"seed", no_time},
    Word{"checkpointing", checkpoints},
    Word{"gradient_checkpointing_kwargs", checkpoints},
    Word{"activation_checkpoints", checkpoints},
    Word{"sequence_parallel", not_modelled},
    Word{"context_parallel_size", not_modelled},
    Word{"expert_model_parallel_size", not_modelled},
    Word{"tensor_parallel", not_modelled},
    Word{"tensor_parallel_size", not_modelled},
    Word{"tensor_model_parallel_size", not_modelled},
    Word{"pipeline_parallel", not_modelled},
    Word{"pipeline_parallel_size", not_modelled},
    Word{"pipeline_model_parallel_size", not_modelled},
    Word{"zero_optimization", zero_hooks},
    Word{"zero_stage", zero_hooks},
    Word{"zero3_init_flag", zero_hooks},
    Word{"use_distributed_optimizer", zero_hooks},
    Word{"overlap_param_gather", zero_hooks},
    Word{"allgather_bucket_size", zero_hooks},
    Word{"fsdp", sharded},
    Word{"fsdp_config", sharded},
    Word{"fsdp_plugin", sharded},
    Word{"deepspeed_plugin", zero_hooks},
    Word{"deepspeed", zero_hooks},
};

/// The spelling of a number that is written here as it is there.
constexpr std::string_view as_it_is = "{}";

/// Is a value of the other program's key, which is a number there, meant for ours? "auto" is what
/// programs take for a number that they find out themselves; another text is of another key.
bool is_meant(const Elsewhere& elsewhere, const Yaml& value) {
  const std::string& given = value.scalar();
  return elsewhere.value != as_it_is || !value.is_scalar() || given == "auto" ||
         parse_number(given).has_value();
}

/// "DistributedDataParallel's bucket_cap_mb is training.bucket_cap here".
std::string is_here(const Elsewhere& elsewhere, const std::string& path) {
  return fmt::format("{}{}{} is {} here", elsewhere.owner, elsewhere.owner.empty() ? "" : " ",
                     elsewhere.name, path);
}

/// The value `given` as our key has it; "" where that depends, or is not worth repeating.
std::string our_value(const Elsewhere& elsewhere, const std::string& given) {
  constexpr std::size_t most = 40;  // characters of a value worth repeating
  if (elsewhere.value == "-" || given.empty() || given.size() > most) return "";
  if (elsewhere.value.empty()) return given;
  if (elsewhere.value != as_it_is && !parse_number(given)) return "";
  return fmt::format(fmt::runtime(elsewhere.value), given);
}

/// "DistributedDataParallel's bucket_cap_mb is training.bucket_cap here: write bucket_cap: 25 MiB";
/// a value that our key does not take, such as "auto", is told as such, with one that it does.
std::string told(const Elsewhere& elsewhere, const std::string& path, const KeyDescription& key,
                 const Yaml& value) {
  std::string text = is_here(elsewhere, path);
  const std::string ours = value.is_scalar() ? our_value(elsewhere, value.scalar()) : "";
  if (!ours.empty() && suits(key.type, ours))
    text += fmt::format(": write {}: {}", key.name, ours);
  else if (!ours.empty())
    text += fmt::format(", which does not take {}: write a value such as {}: {}", shown(ours),
                        key.name, example_value(key));
  return text + (elsewhere.note.empty() ? "" : "; " + elsewhere.note);
}

const Elsewhere* spelt_so(const KeyDescription& key, const std::string& name) {
  const auto& all = key.about.elsewhere;
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Elsewhere& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

/// What to answer for a key that others have and we do not; "" for anything else.
std::string answer_to(const std::string& name) {
  const auto word =
      std::find_if(words.begin(), words.end(), [&](const Word& each) { return each.name == name; });
  return word == words.end() ? "" : std::string(word->answer);
}

}  // namespace

bool spelt_elsewhere(const KeyDescription& key, const std::string& name) {
  return spelt_so(key, name) != nullptr;
}

std::string told_elsewhere(const std::string& name, const Yaml& value, const MapDescription& here) {
  std::string text;
  bool of_here = false;
  const auto look = [&](const std::string& path, const MapDescription& map,
                        const KeyDescription& key) {
    const Elsewhere* elsewhere = spelt_so(key, name);
    if (elsewhere == nullptr || of_here) return;
    if (!is_meant(*elsewhere, value)) return;
    // If several keys fit, the one of this very mapping counts.
    of_here = &map == &here;
    if (text.empty() || of_here) text = told(*elsewhere, path, key, value);
  };
  for (const Format& format : all_formats())
    if (text.empty()) walk(format.root(), look);
  return text.empty() ? answer_to(name) : text;
}

std::string told_elsewhere(const std::string& name) {
  std::string text;
  for (const Format& format : all_formats())
    walk(format.root(), [&](const std::string& path, const MapDescription&,
                            const KeyDescription& key) {
      if (const Elsewhere* elsewhere = spelt_so(key, name); elsewhere != nullptr && text.empty())
        text = is_here(*elsewhere, path);
    });
  return text.empty() ? answer_to(name) : text;
}

}  // namespace ddpsim
