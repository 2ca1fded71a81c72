#pragma once

// What `ddpsim schedule` says of a step, each described once.

#include <array>

#include "tools/report/records/hook_fields.hpp"
#include "tools/report/records/steps_fields.hpp"

namespace ddpsim::fields {

// Hooks.
inline constexpr Field firing =
    count_field("position", "hook", "The place in the firing order, from 0.")
        .only_for(Audience::people);
inline constexpr Field shape = text_field("shape", "shape", "The shape of the parameter.")
                                   .with(little)
                                   .only_for(Audience::people);
inline constexpr Field parameter_bytes =
    bytes_field("parameter_bytes", "size", "The size of the gradient.").only_for(Audience::people);

// Buckets and what is in them.
inline constexpr Field exact_bytes = bytes.labelled("bytes").with(Look{}).with(little);
inline constexpr Field tensors =
    count_field("tensors", "tensors", "How many gradients it holds.").only_for(Audience::people);
inline constexpr Field first_and_last =
    text_field("contents", "first .. last", "The first parameter and the last.")
        .with(Look{}.to_the_left())
        .with(much)
        .only_for(Audience::people);

// Collectives and tasks.
inline constexpr Field all_collectives =
    list_field("collectives", "One object for each collective, in the order of the schedule.");
inline constexpr Field operation = text_field("operation", "operation", "Which collective it is.");
inline constexpr Field collective_bytes =
    bytes_field("bytes", "size", "How many bytes each rank hands to the collective.", Better::low);
inline constexpr Field collective_bucket = count_field(
    "bucket", "bucket", "The bucket that the collective is for; nothing where it is for none.");
inline constexpr Field collective_unit =
    count_field("unit", "unit",
                "Under a strategy that shards, in place of bucket: the unit that the collective is "
                "for.");
inline constexpr Field from_rank =
    count_field("from_rank", "from rank", "The rank whose values a broadcast sends.");
inline constexpr Field what =
    text_field("what", "what", "What the collective or task does, in words.");
inline constexpr Field task_count = count_field("tasks", "tasks", "How many tasks the step has.");
inline constexpr Field task =
    count_field("task", "task", "The task's place in the schedule.").only_for(Audience::people);
inline constexpr Field work =
    text_field("work", "work", "The shape or the bytes of its kernels, and how many they are.")
        .with(Look{}.to_the_left().or_blank())
        .with(Importance::least)
        .only_for(Audience::people);
inline constexpr Field stream =
    text_field("stream", "stream", "Host, compute or communication.").only_for(Audience::people);
inline constexpr Field issued_at =
    ms_field("issued_at", "issued ms", "When the host had issued it.")
        .with(thousandths)
        .only_for(Audience::people);

inline constexpr Field kinds_of_steps =
    list_field("steps", "One object for each kind of consecutive step, in the shape of the whole.");
inline constexpr Field steps_of_this_kind =
    count_field("count", "steps", "How many of the steps are of this kind.");

inline constexpr std::array of_schedule{&format,     &version_of_program,
                                        &scenario,   &cluster,
                                        &strategy,   &hooks,
                                        &parameter,  &bucket,
                                        &host_ms,    &gradient_ms,
                                        &buckets,    &bytes,
                                        &parameters, &all_collectives,
                                        &task_count, &kinds_of_steps,
                                        &phase,      &steps_of_this_kind};
inline constexpr std::array of_collectives{&operation,
                                           &collective_bytes,
                                           &collective_bucket,
                                           &collective_unit,
                                           &from_rank,
                                           &micro_batch,
                                           &what,
                                           &algorithm,
                                           &protocol,
                                           &channels,
                                           &nics,
                                           &collective_bound};

}  // namespace ddpsim::fields
