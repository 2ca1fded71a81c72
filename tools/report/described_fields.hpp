#pragma once

// What a workload description says of itself, each fact described once.

#include <array>

#include "tools/report/field_kinds.hpp"

namespace ddpsim::fields {

inline constexpr Field described =
    record_field("described", "Of a workload description: what was described, and how.");
inline constexpr Field described_source =
    text_field("source", "source", "What was described, and with what.");
inline constexpr Field described_batch = count_field("batch", "batch", "Samples of a micro-batch.");
inline constexpr Field described_sequence =
    count_field("sequence", "sequence", "Tokens of a sample; nothing where there are none.");
inline constexpr Field described_attention = text_field(
    "attention", "attention", "Which kernels attention was described as; nothing without any.");
inline constexpr Field attention_flops{
    .name = "attention_flops",
    .label = "attention FLOPs",
    .kind = ValueKind::real,
    .unit = "FLOP",
    .hint =
        "Multiplications and additions of fused attention in a micro-batch, no mask discounted."};
inline constexpr Field masked_flops{
    .name = "masked_flops",
    .label = "masked FLOPs",
    .kind = ValueKind::real,
    .unit = "FLOP",
    .hint =
        "The operations among them that a causal mask leaves out, and that are "
        "not priced."};
inline constexpr Field described_notes = list_field(
    "notes", "What was described as CUDA does it, where the meta device does something else.");
inline constexpr Field partial =
    list_field("partial",
               "Operations that no rule knows, priced by their bytes alone: the step "
               "takes at least as long as predicted.");

inline constexpr std::array of_description{
    &described,          &described_source,    &described_batch,
    &described_sequence, &described_attention, &attention_flops,
    &masked_flops,       &described_notes,     &partial};

}  // namespace ddpsim::fields
