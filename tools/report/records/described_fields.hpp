#pragma once

// What a workload description says of itself, each fact described once.

#include <array>

#include "tools/report/records/field_kinds.hpp"

namespace ddpsim::fields {

inline constexpr Field described = record_field(
    "described",
    "What a workload description says of itself: the model that was described, and how.");
inline constexpr Field described_source =
    text_field("source", "source", "Which model was described, and with which PyTorch.");
inline constexpr Field described_batch =
    count_field("batch", "batch", "How many samples a micro-batch has.");
inline constexpr Field described_sequence =
    count_field("sequence", "sequence",
                "How many tokens a sample has; nothing where samples are no sequences.");
inline constexpr Field described_attention =
    text_field("attention", "attention",
               "Which attention kernels were described; nothing where the model has no attention.");
inline constexpr Field described_compute =
    text_field("compute", "compute",
               "In which data type most products were described, such as bf16 under autocast; "
               "nothing where it is that of the parameters.");
inline constexpr Field described_recomputed =
    count_field("recomputed_kernels", "recomputed kernels",
                "How many distinct kernels of the forward pass the backward pass runs again, as "
                "activation checkpoints do.");
inline constexpr Field attention_flops{
    .name = "attention_flops",
    .label = "attention FLOPs",
    .kind = ValueKind::real,
    .unit = "FLOP",
    .hint =
        "Multiplications and additions of fused attention in a micro-batch, with those that a "
        "causal mask leaves out."};
inline constexpr Field masked_flops{
    .name = "masked_flops",
    .label = "masked FLOPs",
    .kind = ValueKind::real,
    .unit = "FLOP",
    .hint =
        "The part of attention_flops that a causal mask leaves out, and that is "
        "not priced."};
inline constexpr Field described_notes =
    list_field("notes",
               "Where CUDA runs other kernels than PyTorch's meta device, on which the model was "
               "captured: what was described in place of what.");
inline constexpr Field partial =
    list_field("partial",
               "Operations that no rule knows, priced by their bytes alone: the step "
               "takes at least as long as predicted.");

inline constexpr std::array of_description{&described,
                                           &described_source,
                                           &described_batch,
                                           &described_sequence,
                                           &described_attention,
                                           &described_compute,
                                           &described_recomputed,
                                           &attention_flops,
                                           &masked_flops,
                                           &described_notes,
                                           &partial};

}  // namespace ddpsim::fields
