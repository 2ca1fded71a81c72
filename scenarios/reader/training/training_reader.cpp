#include "scenarios/reader/training/training_reader.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <sstream>
#include <unordered_map>

#include <fmt/format.h>

#include "model/parallel/policy/fsdp_refusals.hpp"
#include "model/parallel/policy/refusals.hpp"
#include "model/parallel/policy/zero_refusals.hpp"
#include "model/parallel/write/step_works.hpp"
#include "scenarios/reader/format/map.hpp"
#include "scenarios/reader/measured/measured_reader.hpp"
#include "scenarios/reader/training/comm_hook_reader.hpp"
#include "scenarios/reader/training/fsdp_variant_reader.hpp"
#include "scenarios/reader/training/unit_reader.hpp"
#include "scenarios/reader/training/user_hook_reader.hpp"
#include "scenarios/reader/training/zero_reader.hpp"

namespace ddpsim {
namespace {

/// `buckets: [[name, ...], ...]`
std::vector<std::vector<int>> read_buckets(const Yaml& given, const Workload& workload) {
  std::unordered_map<std::string, int> index_of;
  std::vector<std::string> names;
  for (const Parameter& parameter : workload.parameters) {
    index_of.emplace(parameter.name, static_cast<int>(names.size()));
    names.push_back(parameter.name);
  }
  std::vector<std::vector<int>> buckets;
  for (const Yaml& bucket : given.list("a list of lists of parameter names")) {
    std::vector<int>& indices = buckets.emplace_back();
    for (const Yaml& item : bucket.list("a list of parameter names")) {
      const std::string name = item.text("a parameter name");
      const auto found = index_of.find(name);
      if (found == index_of.end()) {
        const std::string guess = nearest(name, names);
        item.fail(fmt::format("{} has no parameter \"{}\"{}", workload.name, name.substr(0, 100),
                              guess.empty() ? "" : fmt::format("; did you mean \"{}\"?", guess)));
      }
      indices.push_back(found->second);
    }
  }
  return buckets;
}

/// The two iterations that have names.
enum class Phase : std::uint8_t { steady, first };
constexpr std::array all_phases{Phase::steady, Phase::first};
constexpr std::string_view name_of(Phase phase) {
  return phase == Phase::steady ? "steady" : "first";
}

constexpr std::int64_t last_iteration = 1'000'000'000;

const Map<Join>& join_map() {
  static const auto map =
      Map<Join>("join",
                "Uneven inputs: DistributedDataParallel's forward within join(), as a rank "
                "that still has inputs runs it.")
          .key("throw_on_early_termination", value::boolean(), &Join::throw_on_early_termination,
               {.meaning = "Whether all ranks stop once one has run out of inputs, which costs an "
                           "all-reduce per step."})
          .key("divide_by_initial_world_size", value::boolean(),
               &Join::divide_by_initial_world_size,
               {.meaning = "Whether gradients are divided by the number of all ranks. If not, they "
                           "are divided by the number of those that still have inputs, which the "
                           "host reads at the first gradient."})
          .key("joined_ranks", value::whole(0, 1 << 20), &Join::joined_ranks,
               {.meaning =
                    "How many ranks, the last ones, have run out of inputs: on a real backend "
                    "they send zeros through every collective of the others. That costs a "
                    "step nothing, so predictions do not depend on it."});
  return map;
}

/// `join: true`, or a mapping.
Value<std::optional<Join>> join_value() {
  const auto mapping = value::mapping(&join_map);
  return {value::either({value::boolean().type, mapping.type}),
          [=](const Yaml& given) -> std::optional<Join> {
            if (!given.is_scalar()) return mapping.read(given);
            return given.boolean() ? std::optional<Join>(Join{}) : std::nullopt;
          },
          {}};
}

/// What is read of `training:` needs the workload beside it.
struct TrainingDraft : Training {
  const Workload* workload = nullptr;
  std::optional<Phase> phase;
  std::optional<int> given_iteration;
};

struct DelayedDraft : DelayedAllReduce {
  const Workload* workload = nullptr;
};

const Map<DelayedDraft>& delayed_map() {
  static const auto map =
      Map<DelayedDraft>("delay_all_reduce",
                        "Parameters that DistributedDataParallel does not reduce, but a hook on "
                        "another parameter: their gradients lie in one buffer, which the hook "
                        "divides and all-reduces, and nobody waits for that.")
          .key_read("parameters", {value::list({value::form(Form::Kind::text)}, 1)},
                    [](DelayedDraft& delayed, const Yaml& given) {
                      for (const Yaml& item : given.list("a list of names, with * for any text"))
                        for (const auto& found : parameters_named(item, *delayed.workload))
                          if (!delayed.contains(found)) delayed.parameters.push_back(found);
                    },
                    {.meaning = "The names of the parameters, with * for any text.",
                     .example = "[\"head.*\"]",
                     .required = true,
                     .elsewhere = {{"delay_all_reduce_named_params", "DistributedDataParallel's"}}})
          .key_read(
              "hook", {value::form(Form::Kind::text)},
              [](DelayedDraft& delayed, const Yaml& given) {
                const auto hooked = parameters_named(given, *delayed.workload);
                if (hooked.size() != 1)
                  given.fail(fmt::format("expected the name of one parameter, and {} are named so",
                                         hooked.size()));
                delayed.hook = hooked.front();
              },
              {.meaning = "The name of the parameter whose gradient sends them. It comes "
                          "later in the backward pass than all of them.",
               .example = "embed.weight",
               .required = true,
               .elsewhere = {{"param_to_hook_all_reduce", "DistributedDataParallel's"}}});
  return map;
}

/// `delay_all_reduce: {parameters: ["head.*"], hook: embed.weight}`
DelayedAllReduce read_delayed(const Yaml& given, const Workload& workload) {
  DelayedDraft delayed;
  delayed.workload = &workload;
  delayed_map().read(given, delayed);
  return delayed;
}

/// `bucket_caps: [1 MiB, 4 MiB]`
std::vector<Bytes> read_caps(const Yaml& given) {
  std::vector<Bytes> caps;
  for (const Yaml& item : given.list("a list of sizes, such as [1 MiB, 4 MiB, 25 MiB]"))
    caps.push_back(item.bytes());
  if (caps.empty()) given.fail("expected at least one size");
  return caps;
}

/// What the keys say together.
void finish_training(TrainingDraft& training, const YamlMap& map) {
  check_keys_of_variant(training, map);
  training.give_rule(training.bucket_rule);
  if (map.has("bucket_cap")) training.give_cap(training.bucket_cap);
  training.iteration = training.given_iteration.value_or(training.phase == Phase::first ? 1 : 0);
}

void add_buckets(Map<TrainingDraft>& map) {
  map.key("bucket_cap", value::size(), &TrainingDraft::bucket_cap,
          {.meaning = "The size at which a bucket closes. Where it is not given the first one "
                      "closes at 1 MiB: see `first_bucket_cap`. Fractions of a byte are cut off, "
                      "as DistributedDataParallel does.",
           .example = "50 MiB",
           .source = "torch.nn.parallel.DistributedDataParallel, bucket_cap_mb (rule R11)",
           .elsewhere = {{"bucket_cap_mb", "DistributedDataParallel's", "{} MiB"},
                         {"ddp_bucket_cap_mb", "Hugging Face's", "{} MiB"},
                         {"reduce_bucket_size", "DeepSpeed's", "-",
                          "that counts elements, this one bytes"},
                         {"allreduce_bucket_size", "DeepSpeed's", "-",
                          "that counts elements, this one bytes"},
                         {"ddp_bucket_size", "Megatron's", "-",
                          "that counts elements, this one bytes"},
                         {"bucket_size", "Megatron's", "-", "that counts elements, this one bytes"},
                         {"fusion_threshold", "Horovod's", "-",
                          "with a unit, and bucket_rule: before_overflow"}}})
      .key("bucket_rule",
           value::one_of(all_bucket_rules,
                         {"once its size has reached the cap, as PyTorch does",
                          "before a gradient that would take it past the cap, as DeepSpeed and "
                          "Horovod do"}),
           &TrainingDraft::bucket_rule, {.meaning = "When a bucket closes."})
      .key_read("first_bucket_cap",
                value::either({value::size().type, {value::word("none", "it is like the others")}}),
                [](TrainingDraft& training, const Yaml& given) {
                  training.first_cap_given = true;
                  if (given.is_scalar()) given.text("a size, or none");
                  if (given.is_word("none"))
                    training.first_bucket_cap.reset();
                  else
                    training.first_bucket_cap = given.bytes();
                },
                {.meaning = "The cap of the first bucket, which is small so that communication "
                            "starts early.",
                 .unset = "1 MiB",
                 .otherwise = "none under before_overflow, and none where `pytorch` is 2.13 and a "
                              "bucket_cap is given",
                 .source = "torch.distributed._DEFAULT_FIRST_BUCKET_BYTES (rule R12)",
                 .elsewhere = {{"_DEFAULT_FIRST_BUCKET_BYTES", "torch.distributed's", "{} B"}}})
      .key(
          "last_bucket_cap", value::boolean(), &TrainingDraft::last_bucket_cap,
          {.meaning = "Whether the bucket with a cap of its own is launched last instead of first.",
           .source = "the environment variable DDP_SET_LAST_BUCKET_CAP",
           .elsewhere = {{"DDP_SET_LAST_BUCKET_CAP", "PyTorch's"}}})
      .key_read("bucket_caps", {value::list(value::size().type, 1)},
                [](TrainingDraft& training, const Yaml& given) {
                  training.bucket_caps = read_caps(given);
                },
                {.meaning = "A cap for each bucket in order, of which the last one repeats.",
                 .otherwise = "first_bucket_cap, then bucket_cap",
                 .example = "[1 MiB, 4 MiB, 25 MiB]",
                 .elsewhere = {{"bucket_cap_mb_list", "DistributedDataParallel's", "-",
                                "with a unit each"}}})
      .key_read("buckets", {value::list({value::list({value::form(Form::Kind::text)}, 1)})},
                [](TrainingDraft& training, const Yaml& given) {
                  training.buckets = read_buckets(given, *training.workload);
                },
                {.meaning = "The buckets themselves, in launch order: lists of parameter names in "
                            "which every parameter stands once. `ddpsim tune` prints such a list.",
                 .otherwise = "buckets are made by the caps",
                 .example = "[[2.bias, 2.weight], [0.bias, 0.weight]]"})
      .key_read(
          "parameter_groups", {value::integer_form(1, std::numeric_limits<int>::max())},
          [](TrainingDraft& training, const Yaml& given) {
            training.parameter_groups =
                static_cast<int>(given.integer(1, std::numeric_limits<int>::max()));
          },
          {.meaning = "That many contiguous groups of parameters are the buckets, at most one "
                      "for each parameter.",
           .otherwise = "buckets are made by the caps",
           .example = "2"});
  for (const ExclusiveKey& each : exclusive_keys())
    map.excludes(std::string(each.key), {each.others.begin(), each.others.end()},
                 std::string(each.reason));
}

const Map<InputPipeline>& pipeline_map() {
  static const auto map =
      Map<InputPipeline>("input",
                         "What making batches costs the cores of a node, ahead of the steps that "
                         "take them. No step is shorter than a node needs for its ranks' batches.")
          .key("time", value::time(), &InputPipeline::batch,
               {.meaning = "How long one core works on a batch of one rank.",
                .example = "480 ms",
                .required = true})
          .key("cores", value::whole(1, 100'000), &InputPipeline::cores,
               {.meaning = "How many cores of a node make batches, for all of its ranks.",
                .example = "48",
                .required = true});
  return map;
}

struct InputChoice {
  Input kind = Input::ready;
  std::optional<InputPipeline> pipeline;
};

/// `ready`, `decoded`, or a mapping.
Value<InputChoice> input_value() {
  const auto word = value::one_of(
      all_inputs, {"batches are there when a step begins: synthetic, cached, or tokens",
                   "hosts decode them while GPUs compute, at an unknown pace: ranks differ as much "
                   "as in public runs of that kind, by a larger usual `cluster.skew`"});
  const auto mapping = value::mapping(&pipeline_map);
  return {value::either({word.type, mapping.type}),
          [=](const Yaml& given) -> InputChoice {
            if (given.is_map()) return {Input::ready, mapping.read(given)};
            return {word.read(given), std::nullopt};
          },
          {}};
}

void add_modes(Map<TrainingDraft>& map) {
  map.key_taken("input", input_value(),
                [](TrainingDraft& training, const InputChoice& given) {
                  training.input = given.kind;
                  training.pipeline = given.pipeline;
                },
                {.meaning = "Where batches come from: they are ready, the hosts decode them "
                            "meanwhile, or a number of cores makes them at a known pace.",
                 .unset = "ready",
                 .example = "{time: 480 ms, cores: 48}"});
  map.key("micro_batches", value::whole(1, 1024), &TrainingDraft::micro_batches,
          {.meaning = "How many forward and backward passes there are before an update.",
           .example = "4",
           .elsewhere = {{"gradient_accumulation_steps", "Hugging Face's and DeepSpeed's"},
                         {"accumulate_grad_batches", "Lightning's"},
                         {"num_microbatches", "Megatron's"},
                         {"num_micro_batches", ""},
                         {"gradient_accumulation", ""},
                         {"grad_accum", ""},
                         {"accumulation_steps", ""},
                         {"backward_passes_per_step", "Horovod's"}}})
      .key("no_sync", value::boolean(), &TrainingDraft::no_sync,
           {.meaning = "Whether only the last micro-batch communicates, as under "
                       "DistributedDataParallel.no_sync(). With one micro-batch that is every "
                       "one."})
      .key("find_unused_parameters", value::boolean(), &TrainingDraft::find_unused_parameters,
           {.meaning = "Whether DistributedDataParallel searches the graph for parameters that no "
                       "gradient will reach.",
            .elsewhere = {{"ddp_find_unused_parameters", "Hugging Face's"}}})
      .key("skip_all_reduce_unused_params", value::boolean(),
           &TrainingDraft::skip_all_reduce_unused_params,
           {.meaning = "Whether buckets that hold nothing but unused parameters are left out."})
      .key("static_graph", value::boolean(), &TrainingDraft::static_graph,
           {.meaning = "Whether DistributedDataParallel is told that the graph never changes."})
      .key("gradient_as_bucket_view", value::boolean(), &TrainingDraft::gradient_as_bucket_view,
           {.meaning = "Whether gradients are views of their buckets, which saves the copies out "
                       "and, where `zero_grad` keeps gradients (`pytorch: 1.13`), those in."})
      .key("batched_grad_copy", value::boolean(), &TrainingDraft::batched_grad_copy,
           {.meaning = "Whether a bucket's gradients are copied into it and divided together, once "
                       "all are there."})
      .key("flattened_buckets", value::boolean(), &TrainingDraft::flattened_buckets,
           {.meaning = "Whether buckets are those of a wrapper of your own around torch's "
                       "_flatten_dense_tensors: each is made one tensor and sent once it is full, "
                       "divided and copied back after the backward pass; one gradient alone is "
                       "sent as it is."})
      .key("copied_buckets", value::boolean(), &TrainingDraft::copied_buckets,
           {.meaning = "Whether buckets are those of a wrapper of your own that keeps a buffer for "
                       "each: gradients are copied into it one by one once all are there, and it "
                       "is sent at once, divided and copied back after the backward pass."})
      .key("wait_for_all", value::boolean(), &TrainingDraft::wait_for_all,
           {.meaning = "Whether a wrapper of your own (`overlap`, `flattened_buckets`, "
                       "`copied_buckets`) waits for all results before it divides or copies back "
                       "the first, so that none of that hides behind all-reduces. "
                       "DistributedDataParallel waits bucket by bucket."})
      .key("average",
           value::one_of(all_averages,
                         {"kernels divide the sum by the number of ranks, as "
                          "DistributedDataParallel does",
                          "all-reduces make the mean, as ReduceOp.AVG of NCCL does: nothing is "
                          "divided (simulated only)"}),
           &TrainingDraft::average,
           {.meaning = "Who makes the mean of the gradients' sum, in a loop or wrapper of your "
                       "own.",
            .elsewhere = {{"average_in_collective", "Megatron's", "-",
                           "where it is true write average: all_reduce"}}})
      .key("flat_views", value::boolean(), &TrainingDraft::flat_views,
           {.meaning = "Under `flat`, whether gradients become views of the concatenated gradient "
                       "after its all-reduce, so that nothing is copied back (simulated only)."})
      .key("broadcast_buffers", value::boolean(), &TrainingDraft::broadcast_buffers,
           {.meaning = "Whether rank 0's buffers, such as the statistics of batch norms, go to all "
                       "ranks before each synchronised forward pass. Naive, flat and overlap, "
                       "which are no DDP, send none.",
            .elsewhere = {{"ddp_broadcast_buffers", "Hugging Face's"}}})
      .key_read(
          "comm_hook", comm_hook_type(),
          [](TrainingDraft& training, const Yaml& given) {
            training.comm_hook = read_comm_hook(given);
          },
          {.meaning = "What a bucket does instead of a plain all-reduce, by PyTorch's names: a "
                      "name, a mapping of a name to its settings, or a list of steps of your "
                      "own.",
           .unset = "none",
           .example = "{powersgd: {rank: 4, start_iteration: 10}}",
           .source = "torch/distributed/algorithms/ddp_comm_hooks; see `ddpsim list hooks`",
           .elsewhere =
               {{"ddp_comm_hook", "Lightning's"},
                {"ddp_comm_wrapper", "Lightning's", "-", "write {bf16_compress_wrapper: powersgd}"},
                {"comm_wrapper", "Accelerate's", "-",
                 "write comm_hook: {bf16_compress_wrapper: powersgd}"},
                {"powerSGD_hook", "PyTorch's", "-", "write comm_hook: powersgd"},
                {"batched_powerSGD_hook", "PyTorch's", "-", "write comm_hook: batched_powersgd"},
                {"fp16_compress_hook", "PyTorch's", "-", "write comm_hook: fp16_compress"},
                {"bf16_compress_hook", "PyTorch's", "-", "write comm_hook: bf16_compress"},
                {"post_localSGD_hook", "PyTorch's", "-", "write comm_hook: post_local_sgd"}}})
      .key_read(
          "hooks", user_hooks_type(),
          [](TrainingDraft& training, const Yaml& given) {
            training.hooks = read_user_hooks(given, *training.workload);
          },
          {.meaning = "Hooks that you attach to parameters or layers, with their cost and, on "
                      "a real backend, their effect. Those on one gradient run in this order.",
           .otherwise = "there are none",
           .example = "[{clip: {layer: \"*\", norm: 1.0}}]"})
      .key(
          "join", join_value(), &TrainingDraft::join,
          {.meaning = "Uneven inputs: whether the step runs within DistributedDataParallel.join(), "
                      "and how.",
           .unset = "false",
           .example = "{divide_by_initial_world_size: false}"})
      .key_read("delay_all_reduce",
                {value::map([]() -> const auto& { return delayed_map().description(); })},
                [](TrainingDraft& training, const Yaml& given) {
                  training.delayed = read_delayed(given, *training.workload);
                },
                {.meaning = "Parameters whose gradients are reduced together by a hook on another "
                            "parameter; nothing waits for that.",
                 .otherwise = "all are in buckets",
                 .example = "{parameters: [\"head.*\"], hook: embed.weight}",
                 .source = "DistributedDataParallel's delay_all_reduce_named_params (rule R50)"})
      .key("phase",
           value::one_of(all_phases, {"as most iterations are",
                                      "the first, before buckets are rebuilt by the order of "
                                      "arrival"}),
           &TrainingDraft::phase,
           {.meaning = "Which iteration of the training the step is.", .unset = "steady"})
      .key("iteration", value::whole(1, last_iteration), &TrainingDraft::given_iteration,
           {.meaning = "Which iteration of the training the step is, counted from 1. What comm "
                       "hooks and buckets do depends on it while training begins.",
            .otherwise = "as `phase` says",
            .example = "2"})
      .excludes("iteration", {"phase"}, "iteration and phase exclude each other");
}

constexpr int most_prefetched = 1024;

/// A type, of which PyTorch's names get a hint.
template <typename Names>
auto type_value(const Names& types, const std::vector<std::string>& meanings) {
  auto type = value::one_of(types, meanings);
  type.read = [read = type.read, &types](const Yaml& given) {
    std::string text = given.is_scalar() ? given.scalar() : "";
    if (text.starts_with("torch.")) text = text.substr(std::string_view("torch.").size());
    constexpr std::array<std::pair<std::string_view, DType>, 5> torchs{{{"bfloat16", DType::bf16},
                                                                        {"float16", DType::fp16},
                                                                        {"half", DType::fp16},
                                                                        {"float32", DType::fp32},
                                                                        {"float", DType::fp32}}};
    for (const auto& [name, same] : torchs)
      if (text == name && std::ranges::find(types, same) != types.end())
        given.fail(
            fmt::format("{} is {} here: write {}", given.scalar(), name_of(same), name_of(same)));
    return read(given);
  };
  return type;
}

constexpr std::array mixed_types{DType::bf16, DType::fp16, DType::fp32};

const Map<MixedPrecision>& mixed_precision_map() {
  static const auto map = [] {
    const auto type =
        type_value(mixed_types, {"bfloat16", "IEEE half precision", "32-bit floating point"});
    Map<MixedPrecision> all("mp_policy",
                            "Strategy fsdp: fully_shard's MixedPrecisionPolicy. A rank's parts of "
                            "parameters, their gradients and the optimizer's state stay in "
                            "`workload.dtype`.");
    all.key("param_dtype", type, &MixedPrecision::param_dtype,
            {.meaning = "The type that parts are cast to before they are gathered. Whole "
                        "parameters, their gradients and all passes are in it.",
             .otherwise = "workload.dtype, with the passes of workload.compute",
             .example = "bf16",
             .elsewhere = {{"mixed_precision_param", "torchtitan's", "-", "bfloat16 is bf16"}}})
        .key("reduce_dtype", type, &MixedPrecision::reduce_dtype,
             {.meaning = "The type that gradients are reduce-scattered in. Kernels divide what is "
                         "sent in fp16, before and behind.",
              .otherwise = "the type of whole gradients: param_dtype",
              .example = "fp32",
              .elsewhere = {{"mixed_precision_reduce", "torchtitan's", "-", "float32 is fp32"}}});
    return all;
  }();
  return map;
}

const Map<CpuOffload>& offload_map() {
  static const auto map =
      Map<CpuOffload>("offload_policy",
                      "Strategy fsdp: fully_shard's CPUOffloadPolicy. Parts of parameters, their "
                      "gradients and the optimizer's state are in pinned memory of the host.")
          .key("copies", value::bandwidth(), &CpuOffload::copies,
               {.meaning = "How fast one rank's parts are copied to its GPU, and gradients back, "
                           "while all ranks of the node copy.",
                .example = "25 GB/s",
                .required = true})
          .key("update", value::time(), &CpuOffload::update,
               {.meaning = "How long the host takes to update one rank's parts. No law of it is "
                           "known here: time optimizer.step() once.",
                .example = "850 ms",
                .required = true});
  return map;
}

/// `none`, or a mapping; `cpu` alone does not say enough.
Value<std::optional<CpuOffload>> offload_value() {
  const auto mapping = value::mapping(&offload_map);
  return {value::either({{value::word("none", "all is on the device")}, mapping.type}),
          [=](const Yaml& given) -> std::optional<CpuOffload> {
            if (given.is_word("none")) return std::nullopt;
            if (given.is_scalar())
              given.fail(
                  "with parameters on the host it updates them, and how long that takes is "
                  "not known: write {copies: 25 GB/s, update: 850 ms} with your own numbers");
            return mapping.read(given);
          },
          {}};
}

/// The keys of strategy fsdp, by PyTorch's names.
void add_shards(Map<TrainingDraft>& map) {
  map.key_read(
         "units", units_type(),
         [](TrainingDraft& training, const Yaml& given) {
           GivenUnits units = read_units(given, *training.workload);
           training.units = std::move(units.parameters);
           training.unit_modules = std::move(units.modules);
           training.unit_settings = std::move(units.settings);
         },
         {.meaning = "Strategy fsdp: the modules that fully_shard is called with, in that "
                     "order: a name, with * for any text between two dots, makes a unit of "
                     "each module named so; names with + between are one unit. The root takes "
                     "what is left. A mapping gives settings of its own to what it names.",
          .otherwise = "a unit for each block: what shares its name up to the first number",
          .example = "[\"*\"]"})
      .key("reshard_after_forward", reshard_value(), &TrainingDraft::reshard_after_forward,
           {.meaning = "Strategy fsdp: whether a unit's parameters are freed behind its forward "
                       "pass and gathered again for the backward pass. A number, which divides "
                       "that of the ranks that share them: so many ranks next to each other keep "
                       "one of as many parts each, and gather these for the backward pass.",
            .unset = "auto",
            .source = "torch.distributed.fsdp.fully_shard (rules F27-F30)"})
      .key("reshard_after_backward", value::boolean(), &TrainingDraft::reshard_after_backward,
           {.meaning = "Strategy fsdp: whether whole parameters are freed behind the backward pass "
                       "of each micro-batch. If not, the next one's forward pass gathers nothing; "
                       "behind the last one they are always freed.",
            .source = "FSDPModule.set_reshard_after_backward (rules F51, F52)"})
      .key(
          "forward_prefetch", value::whole(0, most_prefetched), &TrainingDraft::forward_prefetch,
          {.meaning = "Strategy fsdp: before a unit's forward pass the host issues the all-gathers "
                      "of so many units behind it, explicitly. The order of collectives stays; "
                      "a slow host exposes less of them.",
           .source = "FSDPModule.set_modules_to_forward_prefetch (rule F23)"})
      .key("backward_prefetch", value::whole(0, most_prefetched), &TrainingDraft::backward_prefetch,
           {.meaning = "Strategy fsdp: before a unit's backward pass the host issues the "
                       "all-gathers of so many units before it, explicitly. 0: of one, as "
                       "fully_shard does by itself; 2 hold one more gather.",
            .source = "FSDPModule.set_modules_to_backward_prefetch (rule F33)"})
      .key("replicate", value::whole(1, 1 << 20), &TrainingDraft::replicate,
           {.meaning = "Strategy fsdp: so many groups of ranks next to each other keep a replica "
                       "each, sharded among its ranks alone; what they reduce-scattered is "
                       "all-reduced among the groups. HSDP is as many replicas as nodes.",
            .source = "torch.distributed.fsdp.fully_shard with a mesh of two dimensions (rules "
                      "F55-F57)"})
      .key("requires_all_reduce",
           value::one_of(all_all_reduced, {"all micro-batches that reduce-scatter",
                                           "the last micro-batch alone: each replica adds up what "
                                           "it reduce-scattered until then"}),
           &TrainingDraft::requires_all_reduce,
           {.meaning = "Strategy fsdp with `replicate`: which micro-batches are all-reduced among "
                       "the replicas.",
            .source = "FSDPModule.set_requires_all_reduce (rule F57)"})
      .key("reduce_scatter_max_input_buffers", value::whole(1, 64),
           &TrainingDraft::reduce_scatter_max_input_buffers,
           {.meaning = "Strategy fsdp: how many inputs of reduce-scatters are held at a time; the "
                       "kernels wait for the oldest one before the next is packed.",
            .source = "FSDPModule.set_reduce_scatter_max_input_buffers (rule F36)"})
      .key("separate_reduce_scatter_group", value::boolean(),
           &TrainingDraft::separate_reduce_scatter_group,
           {.meaning = "Strategy fsdp: whether reduce-scatters have a communicator of their own "
                       "beside that of all-gathers.",
            .source = "FSDPModule.set_separate_reduce_scatter_group (rule F39)"})
      .key("cuda_device_max_connections", value::whole(1, 32),
           &TrainingDraft::cuda_device_max_connections,
           {.meaning = "Strategy fsdp: CUDA_DEVICE_MAX_CONNECTIONS. With 1 all streams of a GPU "
                       "share a queue, and what one task waits for, all behind it wait for: "
                       "kernels of the backward pass wait for reduce-scatters. With more, each "
                       "stream has a queue of its own.",
            .source = "CUDA C++ Programming Guide, environment variables; "
                      "github.com/verl-project/verl-omni/issues/421"})
      .key("mp_policy", value::mapping(&mixed_precision_map), &TrainingDraft::mp_policy,
           {.meaning = "Strategy fsdp: mixed precision by fully_shard's own casts, in place of "
                       "autocast's. Of zero1 to zero3 under variants deepspeed and megatron it "
                       "says `param_dtype`: parameters and passes are in that type, masters of a "
                       "rank's part in `workload.dtype`. Other strategies keep "
                       "`workload.compute`.",
            .otherwise = "gathers and reduce-scatters are in `workload.dtype`",
            .example = "{param_dtype: bf16, reduce_dtype: fp32}",
            .source = "torch.distributed.fsdp.MixedPrecisionPolicy (rules F12, F36, F45, F49)"})
      .key("offload_policy", offload_value(), &TrainingDraft::offload_policy,
           {.meaning = "Strategy fsdp: parts of parameters are on the host, which updates them. "
                       "They are copied to the device before each gather, and gradients back "
                       "behind each reduce-scatter.",
            .unset = "none",
            .example = "{copies: 25 GB/s, update: 850 ms}",
            .source = "torch.distributed.fsdp.CPUOffloadPolicy (rule F67)"});
}

void add_fsdp_variant(Map<TrainingDraft>& map) {
  map.key_read(
      "fsdp", {value::map([]() -> const auto& { return fsdp_variant_map().description(); })},
      [](TrainingDraft& training, const Yaml& given) {
        fsdp_variant_map().read(given, training.fsdp);
      },
      {.meaning = "Strategy fsdp: which of PyTorch's two it is, and the options of the older one.",
       .otherwise = "fully_shard",
       .example = "{variant: fsdp1, sharding_strategy: SHARD_GRAD_OP}"});
}

void add_zero(Map<TrainingDraft>& map) {
  const auto add = [&map](const char* name, const Map<ZeroSettings>& (*of)(),
                          ZeroSettings TrainingDraft::*settings, About about) {
    map.key_read(
        name, {value::map([of]() -> const auto& { return of().description(); })},
        [of, settings](TrainingDraft& training, const Yaml& given) {
          of().read(given, training.*settings);
        },
        std::move(about));
  };
  add("zero1", &zero1_map, &TrainingDraft::zero1,
      {.meaning = "Strategy zero1: whose it is, and its options.",
       .otherwise = "torch's ZeroRedundancyOptimizer",
       .example = "{variant: megatron, overlap_grad_reduce: true}"});
  add("zero2", &zero2_map, &TrainingDraft::zero2,
      {.meaning = "Strategy zero2: the options of DeepSpeed's stage 2.",
       .otherwise = "its defaults",
       .example = "{overlap_comm: true}"});
  add("zero3", &zero3_map, &TrainingDraft::zero3,
      {.meaning = "Strategy zero3: the options of DeepSpeed's stage 3.",
       .otherwise = "its defaults",
       .example = "{stage3_prefetch_bucket_size: 50000000}"});
}

/// Other releases are refused by the name of the one they behave like.
Value<PyTorch> release_value() {
  auto release = value::one_of(
      all_pytorches, {"the first bucket is always of 1 MiB, and zero_grad keeps gradients",
                      "to about 2.4: the first bucket of 1.13, and zero_grad drops gradients",
                      "from about 2.5: a cap you give holds for the first bucket too, and "
                      "zero_grad drops gradients"});
  release.read = [read = release.read](const Yaml& given) {
    const std::string text = given.is_scalar() ? given.scalar() : "";
    constexpr std::string_view two = "2.";
    constexpr std::int64_t first_like_2_13 = 5;
    const bool named = text == name_of(PyTorch::v2_0) || text == name_of(PyTorch::v2_13);
    const std::int64_t minor =
        text.starts_with(two) && !named ? parse_integer(text.substr(two.size())).value_or(0) : 0;
    if (minor > 0 && minor < 1000) {
      const PyTorch alike = minor < first_like_2_13 ? PyTorch::v2_0 : PyTorch::v2_13;
      given.fail(
          fmt::format("torch {0} makes buckets as {1} does: write {1}", text, name_of(alike)));
    }
    return read(given);
  };
  return release;
}

const Map<TrainingDraft>& training_map() {
  static const Map<TrainingDraft> map = [] {
    Map<TrainingDraft> all("training", "How gradients are averaged, and when.");
    all.key("strategy", strategy_value(), &TrainingDraft::strategy,
            {.meaning = "How gradients are averaged. `compare` says which strategies `run` "
                        "predicts; `tune` and `schedule` take this one."})
        .key("pytorch", release_value(), &TrainingDraft::pytorch,
             {.meaning = "The release of PyTorch that is meant, where releases differ.",
              .source = "pytorch pull request 121640 (rule R12)"});
    add_buckets(all);
    add_modes(all);
    add_shards(all);
    add_fsdp_variant(all);
    add_zero(all);
    all.check(finish_training);
    return all;
  }();
  return map;
}

/// Where the key of a refusal stands, or the nearest one above it that is there.
Yaml place_of(const Yaml& scenario, const Refusal& refusal) {
  Yaml place = scenario;
  std::istringstream path(refusal.key);
  for (std::string step; std::getline(path, step, '.');) {
    const auto next = place.is_map() ? YamlMap(place).find(step) : std::nullopt;
    if (!next) return place;
    place = *next;
  }
  for (const std::size_t item : refusal.items) {
    const std::vector<Yaml> items = place.list("a list");
    place = items.at(item);
  }
  return place;
}

}  // namespace

const MapDescription& training_keys() {
  return training_map().description();
}

void check_training(const YamlMap& scenario, const Scenario& read) {
  const WorkloadGradients gradients(read.workload);
  const auto check_no = [&](const std::optional<Refusal>& refusal) {
    if (refusal) place_of(scenario.node(), *refusal).fail(refusal->reason);
  };
  check_no(bucket_refusal(gradients, read.training));
  check_no(slip_refusal(gradients, read.training));
  const auto wraps_buckets = [&read](Strategy strategy) {
    Training training = read.training;
    training.strategy = strategy;
    return training.wraps_buckets();
  };
  if (std::ranges::any_of(read.compare, wraps_buckets)) {
    check_no(step_refusal(gradients, read.training, device_of(read.cluster)));
    check_no(subgroup_refusal(read.training, read.cluster.ranks_per_node));
  }
  if (read.training.strategy == Strategy::fsdp ||
      std::count(read.compare.begin(), read.compare.end(), Strategy::fsdp) > 0)
    check_no(fsdp_refusal(gradients, read.training, device_of(read.cluster)));
  std::vector<DType> kept;
  for (const Parameter& each : read.workload.parameters) kept.push_back(stored_type(each.dtype));
  for (const Strategy strategy : read.compare) {
    Training training = read.training;
    training.strategy = strategy;
    check_no(zero_refusal(gradients, kept, training, device_of(read.cluster)));
  }
}

Training read_training(const Yaml& given, const Workload& workload) {
  TrainingDraft draft;
  draft.workload = &workload;
  training_map().read(given, draft);
  return draft;
}

}  // namespace ddpsim
