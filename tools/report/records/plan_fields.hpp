#pragma once

// The figures of `ddpsim plan` besides those of `run`, each described once.

#include <array>

#include "tools/report/records/sweep_fields.hpp"
#include "tools/report/records/throughput_fields.hpp"

namespace ddpsim::fields {

inline constexpr Field candidates = list_field(
    "candidates",
    "One object for each combination that was tried: those that fit, or may fit, the quickest "
    "first; then those that take more memory than the device has, which were not simulated; then "
    "those that are refused.");
inline constexpr Field sorted_by =
    text_field("sorted_by", "sorted by",
               "What the candidates are sorted by, the highest first: tokens_per_second, "
               "samples_per_second, or micro_batches_per_second where a workload profile does not "
               "say how large its batch was.");
inline constexpr Field place =
    count_field("place", "place",
                "Its place among the candidates that fit, or may fit, the quickest of which has 1; "
                "nothing of the others.");
inline constexpr Field cost_place = count_field(
    "cost_place", "cost place",
    "Its place among them by the time of all devices that a token (or a sample) takes, and so by "
    "its cost, the cheapest first.");
inline constexpr Field chosen_settings =
    Field{.name = "set",
          .label = "set",
          .kind = ValueKind::record,
          .hint = "The keys of the scenario that the plan chose, with their values here."};
inline constexpr Field batch =
    count_field("batch", "batch",
                "Samples of a micro-batch of one rank (workload.batch); nothing where a workload "
                "profile does not say.");
inline constexpr Field peak_of_device =
    ratio_field("peak_of_device", "of device",
                "The peak memory over the memory of the device; nothing where the device's is not "
                "known.",
                Better::low, percent);

// Columns for people alone.
inline constexpr Field gpus = ranks.named("gpus").labelled("GPUs").only_for(Audience::people);
inline constexpr Field planned_way =
    text_field("way", "strategy", "The strategy, and what of it the plan chose.")
        .with(most)
        .with(Look{}.to_the_left())
        .only_for(Audience::people);
/// "97.1 to 105.3", or "no band".
inline constexpr Field band_in_words =
    text_field("band", "band ms", "The band around the step, in ms.").only_for(Audience::people);
inline constexpr Field largest_batch =
    text_field("largest_batch", "fits to batch",
               "The largest batch tried that fits, from the smallest number of GPUs on.")
        .with(most)
        .only_for(Audience::people);
inline constexpr Field fell_out =
    text_field("fell_out", "why no more", "Why there is no more of it among the best.")
        .with(most)
        .with(Look{}.to_the_left().or_blank())
        .only_for(Audience::people);

inline constexpr std::array of_plan{
    &format,       &version_of_program, &scenario,        &device_name,
    &device_bytes, &sorted_by,          &notes,           &place,
    &candidates,   &cost_place,         &chosen_settings, &batch,
    &nodes,        &ranks_per_node,     &peak_of_device,  &refusal};

}  // namespace ddpsim::fields
