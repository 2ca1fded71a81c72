#pragma once

// The figures of `run --why`, each described once.

#include <array>

#include "tools/report/records/loss_fields.hpp"
#include "tools/report/records/step_fields.hpp"

namespace ddpsim::fields {

inline constexpr Field why =
    record_field("why", "What holds up each exposed bucket, and what would remove it.");
inline constexpr Field exposed_in_buckets_ms =
    ms_field("exposed_in_buckets_ms", "exposed in buckets ms",
             "The exposed time of all buckets, or units, together.", Better::low);
inline constexpr Field exposed_elsewhere_ms =
    ms_field("exposed_elsewhere_ms", "exposed elsewhere ms",
             "What the step is longer without being exposed in buckets, or behind the update: "
             "interference, copies, "
             "hooks, earlier micro-batches and "
             "broadcasts. Under ZeRO's hooks it is less by what the shared update is shorter than "
             "the whole one, and may be negative.",
             Better::low);
inline constexpr Field exposed_buckets =
    list_field("buckets", "One object for each exposed bucket.");
inline constexpr Field what_if = list_field("what_if", "The step after each change.");

// The instants a collective could not begin before, from the start of the step.
inline constexpr Field bucket_in_words =
    text_field("label", "bucket", "The bucket's number, its first parameter and how many follow.")
        .only_for(Audience::people);
inline constexpr Field ready = ready_ms.labelled("ready").with(little);
inline constexpr Field called_ms =
    ms_field(
        "called_ms", "called",
        "When the bucket's turn came: when all had ended that has to end before its all-reduce. Of "
        "a comm hook's several collectives this, issued_ms, launched_ms, previous_end_ms and, "
        "here, "
        "start_ms and end_ms are of the one that is exposed longest.")
        .with(thousandths)
        .with(little);
inline constexpr Field issued_ms =
    ms_field("issued_ms", "issued", "When the host began to launch the bucket's all-reduce.")
        .with(thousandths);
inline constexpr Field launched_ms = ms_field("launched_ms", "launched",
                                              "When the all-reduce was launched and, on a CPU, "
                                              "handed over to the thread that communicates.")
                                         .with(thousandths)
                                         .with(little);
inline constexpr Field previous_end_ms =
    ms_field("previous_end_ms", "previous",
             "When the collective before it had ended; nothing for the first.")
        .with(thousandths)
        .with(little);
inline constexpr Field start = start_ms.labelled("start");
inline constexpr Field end = end_ms.labelled("end");
inline constexpr Field exposed = bucket_exposed_ms.labelled("exposed").with(most);
inline constexpr Field reason =
    text_field("reason", "reason", "The cause that accounts for most of the exposed time.");
inline constexpr Field exposed_by_ms =
    record_field("exposed_by_ms", "How much of the exposed time each cause accounts for.");
inline constexpr Field waits_for =
    text_field("waits_for", "waits for",
               "The rank that came last, for which the all-reduce waited; nothing where a typical "
               "rank came as late. There only if there are cluster.exceptions.")
        .with(much);
inline constexpr Field because =
    text_field("because", "because", "The causes with what each accounts for, the largest first.")
        .with(Look{}.to_the_left())
        .with(much)
        .only_for(Audience::people);

// The causes.
inline constexpr Field by_gradients =
    ms_field("gradients", "gradients",
             "The bucket's gradients were ready so late that its all-reduce would be exposed "
             "even if it had begun at once.",
             Better::low);
inline constexpr Field by_turn =
    ms_field("turn", "turn",
             "The bucket had to wait for its turn: buckets are sent in order, and naive and "
             "flat send after the backward pass.",
             Better::low);
inline constexpr Field by_previous =
    ms_field("previous", "previous", "The collective before it was still running.", Better::low);
inline constexpr Field by_launch = ms_field(
    "launch", "launch",
    "The host had not launched the all-reduce yet or, on a CPU, not handed it over to the thread "
    "that communicates.",
    Better::low);
inline constexpr Field by_slowest_rank = ms_field(
    "slowest_rank", "slowest rank",
    "Another rank arrived later, so that less computation was left to hide it.", Better::low);
inline constexpr Field by_host_copies =
    ms_field("host_copies", "host copies",
             "With cluster.through_host: the all-reduce waited for its copy to the host, or the "
             "copies to the host and back were exposed themselves. There only if they account for "
             "anything.",
             Better::low);
inline constexpr Field by_hook =
    ms_field("hook", "hook",
             "A later collective of a comm hook waited for the hook's steps before it, such as a "
             "broadcast of ZeRO's hooks for its owner's update. There only if the bucket has "
             "several collectives.",
             Better::low);

inline constexpr Field by_kernels_wait = ms_field(
    "kernels_wait", "kernels wait",
    "Kernels of the pass that do not need its result stood behind it: without a stream for "
    "collectives, as DeepSpeed's without overlap_comm, or until the memory of its input "
    "was free. There only if it accounts for anything.",
    Better::low);
inline constexpr Field by_copy_out =
    ms_field("copy_out", "copy-out",
             "Of a unit's gather: its input was packed once the gather before it had been copied "
             "out.",
             Better::low);
inline constexpr Field by_input_buffer =
    ms_field("input_buffer", "input buffer",
             "Of a unit's reduce-scatter: its gradients were packed once the memory of an earlier "
             "one's input was free.",
             Better::low);
inline constexpr Field by_itself = ms_field(
    "itself", "itself",
    "Of a unit's gather: it would be exposed even if it had begun with the step; of what is sent "
    "behind the update: even if it had begun at once.",
    Better::low);

inline constexpr Field by_one_queue =
    ms_field("one_queue", "one queue",
             "With cuda_device_max_connections: 1: kernels, or the unit's collective itself, stood "
             "behind another collective in the queue that all streams share. There only if it "
             "accounts for anything.",
             Better::low);

// What brings updated parameters behind the optimizer, where no bucket or unit does.
inline constexpr Field behind_update =
    record_field("behind_update",
                 "What sends updated parameters behind the optimizer's update, all of it together: "
                 "a gather, or the broadcasts of their owners. There only under zero1 and zero2.");
inline constexpr Field exposed_behind_update_ms =
    ms_field("exposed_behind_update_ms", "exposed behind update ms", "How much of that is exposed.",
             Better::low);

// The changes.
inline constexpr Field change =
    text_field("change", "change", "What is assumed to be better than in the scenario.");
inline constexpr Field changed_step_ms =
    ms_field("step_ms", "step ms", "The step after the change.", Better::low).with(thousandths);

inline constexpr std::array of_why{&why,
                                   &one_rank_ms,
                                   &lost_slowest_rank_ms,
                                   &lost_interference_ms,
                                   &lost_transfer_ms,
                                   &lost_latency_ms,
                                   &lost_copies_ms,
                                   &lost_launches_ms,
                                   &lost_input_ms,
                                   &lost_rest_ms,
                                   &exposed_in_buckets_ms,
                                   &exposed_elsewhere_ms,
                                   &exposed_buckets,
                                   &what_if,
                                   &index,
                                   &ready_ms,
                                   &called_ms,
                                   &issued_ms,
                                   &launched_ms,
                                   &previous_end_ms,
                                   &start_ms,
                                   &end_ms,
                                   &bucket_exposed_ms,
                                   &reason,
                                   &exposed_by_ms,
                                   &waits_for,
                                   &algorithm,
                                   &protocol,
                                   &channels,
                                   &nics,
                                   &collective_bound,
                                   &by_gradients,
                                   &by_turn,
                                   &by_previous,
                                   &by_launch,
                                   &by_slowest_rank,
                                   &by_host_copies,
                                   &by_hook,
                                   &by_kernels_wait,
                                   &by_copy_out,
                                   &by_input_buffer,
                                   &by_itself,
                                   &by_one_queue,
                                   &behind_update,
                                   &exposed_behind_update_ms,
                                   &change,
                                   &changed_step_ms};

}  // namespace ddpsim::fields
