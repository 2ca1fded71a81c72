#pragma once

// The figures of `ddpsim tune` of a sharded step, each described once.

#include <array>

#include "tools/report/records/memory_fields.hpp"
#include "tools/report/records/tune_fields.hpp"

namespace ddpsim::fields {

// A way to shard.
inline constexpr Field sharding_in_words =
    text_field("label", "sharding", "How the model is sharded, in words.")
        .only_for(Audience::people);
inline constexpr Field blocks_of_unit =
    count_field("blocks", "blocks",
                "How many blocks next to each other are a unit; nothing where "
                "the units are the scenario's own.");
inline constexpr Field own_head =
    flag_field("own_head", "Whether what the root has behind the last block is a unit of its own.");
inline constexpr Field reshard_after_forward =
    text_field("reshard_after_forward", "reshard",
               "What is freed behind forward and gathered again: auto, true or false, as "
               "training.reshard_after_forward says it.");
inline constexpr Field replicate =
    count_field("replicate", "replicas", "How many replicas of the parts there are.");
inline constexpr Field reduce_scatter_max_input_buffers =
    count_field("reduce_scatter_max_input_buffers", "inputs",
                "How many inputs of reduce-scatters are held at a time.");
inline constexpr Field separate_reduce_scatter_group = flag_field(
    "separate_reduce_scatter_group", "Whether reduce-scatters have a communicator of their own.");
inline constexpr Field forward_prefetch =
    count_field("forward_prefetch", "forward prefetch",
                "How many units behind it each prefetches explicitly in the forward pass.");
inline constexpr Field backward_prefetch =
    count_field("backward_prefetch", "backward prefetch",
                "How many units before it each prefetches explicitly in the backward pass; 0: one, "
                "implicitly.");
inline constexpr Field number_of_units =
    count_field("units", "units", "How many units there are, the root's among them.");
inline constexpr Field largest_unit_bytes =
    bytes_field("largest_unit_bytes", "largest", "The parameters of the largest unit, whole.",
                Better::low)
        .with(little);
inline constexpr Field sharded_step_ms =
    ms_field("step_ms", "step ms", "The step, sharded so.", Better::low).with(most);
inline constexpr Field sharded_exposed_ms = ms_field(
    "exposed_ms", "exposed ms",
    "What a step without communication that updates as much does not take of it.", Better::low);
inline constexpr Field sharded_peak_bytes = peak_memory_bytes.with(usual);
inline constexpr Field over_each_block =
    ratio_field("over_default", "over default",
                "The step over that with nothing said (under fsdp, a unit for each block), less 1.",
                Better::low, signed_hundredths_of_percent)
        .with(much)
        .only_for(Audience::people);
inline constexpr Field setting_value =
    text_field("setting", "the best with", "The value of a setting.").only_for(Audience::people);
inline constexpr Field with_else = text_field("with_else", "and", "What else is best with it.")
                                       .with(Look{}.to_the_left().or_blank())
                                       .only_for(Audience::people);

// The options of a ZeRO, under the names that keys of `training` have; each variant has its own.
inline constexpr Field zero_variant = text_field("variant", "variant", "Whose ZeRO it is.");
inline constexpr Field parameters_as_bucket_view =
    flag_field("parameters_as_bucket_view",
               "Variant torch: whether a rank's parameters lie in one piece and are broadcast "
               "together.");
inline constexpr Field parameter_send =
    text_field("send", "send", "Variant course: how updated parameters travel.");
inline constexpr Field course_gradients =
    text_field("gradients", "gradients", "Variant course: how gradients are reduced.");
inline constexpr Field overlap_comm =
    flag_field("overlap_comm", "Variant deepspeed: whether reductions have a stream of their own.");
inline constexpr Field reduce_bucket_size =
    count_field("reduce_bucket_size", "reduce bucket",
                "Variant deepspeed: the elements at which a bucket of gradients is reduced.");
inline constexpr Field prefetch_bucket_size =
    count_field("stage3_prefetch_bucket_size", "prefetch bucket",
                "Stage 3: the elements that are gathered ahead.");
inline constexpr Field max_live_parameters =
    count_field("stage3_max_live_parameters", "max live",
                "Stage 3: the elements that are whole at a time by gathering ahead, at most.");
inline constexpr Field max_reuse_distance =
    count_field("stage3_max_reuse_distance", "max reuse",
                "Stage 3: what is used again within so many elements stays whole.");
inline constexpr Field param_persistence_threshold =
    count_field("stage3_param_persistence_threshold", "persistent",
                "Stage 3: parameters of at most so many elements stay whole.");
inline constexpr Field overlap_grad_reduce =
    flag_field("overlap_grad_reduce",
               "Variant megatron: whether buckets are reduce-scattered during backward.");
inline constexpr Field overlap_param_gather =
    flag_field("overlap_param_gather",
               "Variant megatron: whether updated parameters are gathered during the next forward "
               "pass.");
inline constexpr Field ddp_bucket_size =
    count_field("ddp_bucket_size", "bucket size",
                "Variant megatron: the elements at which a bucket is closed; nothing: as by "
                "itself.");
inline constexpr Field average_in_collective = flag_field(
    "ddp_average_in_collective", "Variant megatron: whether reduce-scatters make the mean.");

// What tune has found.
inline constexpr Field default_sharding =
    record_field("default_sharding", "Nothing is said; under fsdp, each block is a unit.");
inline constexpr Field given_sharding =
    record_field("given_sharding", "The sharding of the scenario.");
inline constexpr Field best_sharding =
    record_field("best_sharding",
                 "The one with the shortest step of those that fit the device (with --objective "
                 "memory, of those close to it the one with the smallest peak).");
inline constexpr Field advised_sharding =
    record_field("advised_sharding",
                 "The one that tune recommends: the scenario's own where another gains no "
                 "more than --noise; else, of those as good as the best within 0.1 %, the "
                 "one that changes the fewest settings.");
inline constexpr Field sharding_pays =
    flag_field("pays", "Whether tune recommends another sharding than the scenario's.");
inline constexpr Field sharding_bound_ms = ms_field(
    "lower_bound_ms", "lower bound ms", "None of the shardings has a shorter step.", Better::low);
inline constexpr Field shardings =
    list_field("shardings",
               "One object for each sharding that was simulated: those that fit the device first, "
               "the shortest step first.");

inline constexpr std::array of_shards{&format,
                                      &version_of_program,
                                      &scenario,
                                      &strategy,
                                      &cluster,
                                      &notes,
                                      &blocks_of_unit,
                                      &own_head,
                                      &reshard_after_forward,
                                      &replicate,
                                      &reduce_scatter_max_input_buffers,
                                      &separate_reduce_scatter_group,
                                      &forward_prefetch,
                                      &backward_prefetch,
                                      &zero_variant,
                                      &parameters_as_bucket_view,
                                      &parameter_send,
                                      &course_gradients,
                                      &overlap_comm,
                                      &reduce_bucket_size,
                                      &prefetch_bucket_size,
                                      &max_live_parameters,
                                      &max_reuse_distance,
                                      &param_persistence_threshold,
                                      &overlap_grad_reduce,
                                      &overlap_param_gather,
                                      &ddp_bucket_size,
                                      &average_in_collective,
                                      &number_of_units,
                                      &largest_unit_bytes,
                                      &sharded_step_ms,
                                      &sharded_exposed_ms,
                                      &sharded_peak_bytes,
                                      &fits_device,
                                      &default_sharding,
                                      &given_sharding,
                                      &best_sharding,
                                      &advised_sharding,
                                      &sharding_pays,
                                      &sharding_bound_ms,
                                      &evaluated,
                                      &without_communication_ms,
                                      &shardings};

}  // namespace ddpsim::fields
