#pragma once

// What a step loses, each part described once.

#include <array>

#include "tools/report/records/field_kinds.hpp"

namespace ddpsim::fields {

inline constexpr Field one_rank_ms =
    ms_field("one_rank_ms", "1 rank",
             "The step of one rank that trains by itself, with the same batch per rank. A step is "
             "this and all its lost_..._ms, to the picosecond.",
             Better::low)
        .with(thousandths);
inline constexpr Field lost_slowest_rank_ms =
    ms_field("lost_slowest_rank_ms", "slowest rank",
             "Lost to waiting for the slowest rank; `slowest_rank_from` says whether it was "
             "measured or assumed.",
             Better::low)
        .with(thousandths);
inline constexpr Field lost_interference_ms =
    ms_field("lost_interference_ms", "interference",
             "Lost because kernels and collectives slow each other while both run.", Better::low)
        .with(thousandths);
inline constexpr Field lost_transfer_ms =
    ms_field("lost_transfer_ms", "transfer",
             "Lost to moving the bytes of collectives, where no computation hides it; of NCCL's "
             "trees also while their pipeline fills.",
             Better::low)
        .with(thousandths);
inline constexpr Field lost_latency_ms =
    ms_field("lost_latency_ms", "latency",
             "Lost to the time of collectives in which no bytes move, where no computation hides "
             "it.",
             Better::low)
        .with(thousandths);
inline constexpr Field lost_copies_ms =
    ms_field("lost_copies_ms", "copies",
             "Lost to kernels that only communication needs: copies into and out of buckets, "
             "divisions, and the kernels "
             "of a comm hook.",
             Better::low)
        .with(thousandths);
inline constexpr Field lost_launches_ms =
    ms_field("lost_launches_ms", "launches",
             "Lost to the host: hooks, the launches of copies and collectives, and, on a CPU, the "
             "handover of collectives to the thread that communicates.",
             Better::low)
        .with(thousandths);
inline constexpr Field lost_input_ms =
    ms_field("lost_input_ms", "input",
             "Lost to waiting for batches, which a node makes for all of its ranks "
             "(training.input); what one rank by itself waits for its own is not in it.",
             Better::low)
        .with(thousandths);
inline constexpr Field lost_rest_ms =
    ms_field("lost_rest_ms", "rest",
             "What is left: the host's waits for the device and for other ranks. Negative where "
             "the strategy computes less than one rank by itself, as an optimizer that is shared "
             "out among the ranks.",
             Better::low)
        .with(thousandths);

inline constexpr std::array of_loss{&one_rank_ms,      &lost_slowest_rank_ms, &lost_interference_ms,
                                    &lost_transfer_ms, &lost_latency_ms,      &lost_copies_ms,
                                    &lost_launches_ms, &lost_input_ms,        &lost_rest_ms};

}  // namespace ddpsim::fields
