#pragma once

// What a step amounts to: throughput, use of the device, scaling and cost, each described once.

#include <array>

#include "tools/report/records/memory_fields.hpp"
#include "tools/report/records/step_fields.hpp"

namespace ddpsim::fields {

constexpr Field rate_field(std::string_view name, std::string_view label, std::string_view unit,
                           std::string_view hint) {
  return {.name = name,
          .label = label,
          .kind = ValueKind::real,
          .unit = unit,
          .hint = hint,
          .better = Better::high};
}
constexpr Field price_field(std::string_view name, std::string_view label, std::string_view unit,
                            std::string_view hint) {
  return {.name = name,
          .label = label,
          .kind = ValueKind::real,
          .unit = unit,
          .hint = hint,
          .better = Better::low,
          .look = hundredths};
}

inline constexpr Field samples_per_second =
    rate_field("samples_per_second", "samples/s", "samples/s",
               "Samples that all ranks together train on in a second; nothing where a workload "
               "profile does not say how large its batch was.")
        .with(Look{"{:.1f}"})
        .with(much);
inline constexpr Field samples_per_second_per_device =
    rate_field("samples_per_second_per_device", "per device", "samples/s",
               "Samples that one device trains on in a second.")
        .with(Look{"{:.2f}"});
inline constexpr Field tokens_per_second =
    rate_field("tokens_per_second", "tokens/s", "tokens/s",
               "Tokens that all ranks together train on in a second; nothing where samples are no "
               "sequences.")
        .with(Look{"{:.0f}"})
        .with(much);
inline constexpr Field tokens_per_second_per_device =
    rate_field("tokens_per_second_per_device", "per device", "tokens/s",
               "Tokens that one device trains on in a second.")
        .with(Look{"{:.0f}"});
inline constexpr Field model_flops = Field{
    .name = "model_flops",
    .label = "model FLOP",
    .kind = ValueKind::real,
    .unit = "FLOP",
    .hint =
        "Multiplications and additions of the matrix products of one rank's forward and "
        "backward passes in a step, as the kernels do them: 6 for each parameter of a "
        "linear layer and token, and those of attention and convolutions. Attention that "
        "is fused leaves out what a causal mask hides. What the backward pass computes a second "
        "time counts once; nothing of a description that does not mark it.",
    .look = {"{:.3g}"}}.with(least);
inline constexpr Field hardware_flops = Field{
    .name = "hardware_flops",
    .label = "executed FLOP",
    .kind = ValueKind::real,
    .unit = "FLOP",
    .hint =
        "model_flops with what is computed a second time: activation checkpoints run a block "
        "again in the backward pass, and fused attention its scores.",
    .look = {"{:.3g}"}}.with(least);
inline constexpr Field mfu =
    ratio_field("mfu", "MFU",
                "Model FLOPs utilisation: model_flops over the step, over what the device "
                "multiplies and adds at its peak in the type of each product.",
                Better::high, tenths_of_percent)
        .with(much);
inline constexpr Field hfu =
    ratio_field("hfu", "HFU",
                "Hardware FLOPs utilisation: as mfu, of hardware_flops. Equal to MFU where "
                "nothing is computed a second time.",
                Better::high, tenths_of_percent);
inline constexpr Field scaling_efficiency =
    ratio_field("scaling_efficiency", "of 1 rank",
                "The step of one rank that trains by itself, with the same batch per rank, over "
                "this step: 1 is perfect scaling.",
                Better::high, tenths_of_percent)
        .with(much);
inline constexpr Field scaling_efficiency_node = ratio_field(
    "scaling_efficiency_node", "of 1 node",
    "The step of one node of this cluster under the same strategy, over this step; nothing where "
    "there is one node. It is the first node, with the exceptions that are in it.",
    Better::high, tenths_of_percent);
inline constexpr Field communication_share = ratio_field(
    "communication_share", "comm share",
    "The share of the step that goes away without communication: exposed_ms over step_ms, unless "
    "the step or the one without communication waits for batches (training.input).",
    Better::low, tenths_of_percent);
inline constexpr Field fits_device{.name = "fits_device",
                                   .label = "fits",
                                   .kind = ValueKind::flag,
                                   .hint =
                                       "Whether the peak memory fits the device's, with a margin; "
                                       "nothing where one of the two is not known."};
inline constexpr Field device_hours_per_billion_tokens =
    price_field("device_hours_per_billion_tokens", "hours/1e9 tokens", "h",
                "Hours of all devices, added up, that a billion tokens take (GPU-hours).");
inline constexpr Field device_hours_per_million_samples =
    price_field("device_hours_per_million_samples", "hours/1e6 samples", "h",
                "Hours of all devices, added up, that a million samples take (GPU-hours).");
inline constexpr Field cost_per_billion_tokens =
    price_field("cost_per_billion_tokens", "cost/1e9 tokens", "currency",
                "What a billion tokens cost at cluster.price; nothing without one.")
        .with(much);
inline constexpr Field cost_per_million_samples =
    price_field("cost_per_million_samples", "cost/1e6 samples", "currency",
                "What a million samples cost at cluster.price; nothing without one.")
        .with(much);
inline constexpr Field currency =
    text_field("currency", "currency", "The currency of the costs, as cluster.price names it.");

/// In the order of JSON and CSV.
inline constexpr std::array of_throughput{&samples_per_second,
                                          &samples_per_second_per_device,
                                          &tokens_per_second,
                                          &tokens_per_second_per_device,
                                          &model_flops,
                                          &mfu,
                                          &hardware_flops,
                                          &hfu,
                                          &scaling_efficiency,
                                          &scaling_efficiency_node,
                                          &communication_share,
                                          &fits_device,
                                          &device_hours_per_billion_tokens,
                                          &device_hours_per_million_samples,
                                          &cost_per_billion_tokens,
                                          &cost_per_million_samples,
                                          &currency};

// The curve over numbers of ranks.
inline constexpr Field scaling =
    list_field("scaling",
               "One object for each number of ranks, the batch of each rank the same; that of one "
               "rank trains by itself, as `none` does, whatever the strategy.");
inline constexpr Field scaling_missing =
    text_field("scaling_missing", "", "Why some numbers of ranks that were asked for are missing.");

inline constexpr std::array of_scaling{&scaling,
                                       &scaling_missing,
                                       &ranks,
                                       &nodes,
                                       &ranks_per_node,
                                       &step_ms,
                                       &scaling_efficiency,
                                       &samples_per_second,
                                       &tokens_per_second};

}  // namespace ddpsim::fields
