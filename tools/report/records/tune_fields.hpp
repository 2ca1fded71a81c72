#pragma once

// The figures of `ddpsim tune`, each described once.

#include <array>

#include "tools/report/records/step_fields.hpp"
#include "tools/report/records/throughput_fields.hpp"

namespace ddpsim::fields {

// Ways to make buckets.
inline constexpr Field buckets_in_words =
    text_field("label", "buckets", "How the buckets are made.").only_for(Audience::people);
inline constexpr Field caps_in_words =
    text_field("caps_in_words", "caps", "The first cap, where it differs, and the cap.")
        .with(much)
        .only_for(Audience::people);
inline constexpr Field first_cap_bytes = bytes_field(
    "first_cap_bytes", "first cap",
    "The cap of the first bucket; nothing where the cap of the other buckets holds for it too.");
inline constexpr Field cap_bytes = bytes_field(
    "cap_bytes", "cap", "The smallest cap that makes these buckets; nothing where no cap does.");
inline constexpr Field highest_cap_bytes = bytes_field(
    "highest_cap_bytes", "highest cap",
    "The largest cap that makes the same buckets; nothing where every larger cap does.");
inline constexpr Field choice_step_ms =
    ms_field("step_ms", "step ms", "The step with these buckets.", Better::low).with(most);
inline constexpr Field number_of_buckets =
    count_field("buckets", "number", "How many buckets there are.");
inline constexpr Field largest_bucket_bytes =
    bytes_field("largest_bucket_bytes", "largest", "The largest of the buckets.", Better::low)
        .with(little);
inline constexpr Field choice_exposed_ms = exposed_ms.with(usual).only_for(Audience::people);
inline constexpr Field over_default =
    ratio_field("over_default", "over default", "The step over that of DDP's default, less 1.",
                Better::low, signed_hundredths_of_percent)
        .with(much)
        .only_for(Audience::people);
inline constexpr Field over_bound =
    ratio_field("over_bound", "over bound", "The step over the lower bound, less 1.", Better::low,
                signed_hundredths_of_percent)
        .only_for(Audience::people);
inline constexpr Field above_shortest =
    ratio_field("above_shortest", "above the shortest",
                "Where the step lies between the shortest (0) and the longest (1).", Better::low,
                as_bar.or_blank())
        .only_for(Audience::people);

// What tune has found.
inline constexpr Field best_cap_bytes =
    bytes_field("best_cap_bytes", "best cap",
                "The cap with the shortest step, rounded to what people would write.");
inline constexpr Field best_cap_step_ms =
    ms_field("best_cap_step_ms", "best cap ms", "The step with the best cap.", Better::low);
inline constexpr Field default_step_ms =
    ms_field("default_step_ms", "default ms", "The step with DDP's default buckets.", Better::low);
inline constexpr Field best_partition =
    list_field("best_partition",
               "The buckets of the best partition that was found, whether or not a cap makes them; "
               "each is a list of parameters' names.");
inline constexpr Field best_partition_step_ms =
    ms_field("best_partition_step_ms", "best partition ms",
             "The step with best_partition; nothing where none was searched.", Better::low);
inline constexpr Field lower_bound_ms =
    ms_field("lower_bound_ms", "lower bound ms",
             "No partition into contiguous buckets has a shorter step.", Better::low);
inline constexpr Field evaluated =
    count_field("evaluated", "evaluated", "How many steps were simulated.");
inline constexpr Field without_communication_ms =
    ms_field("without_communication_ms", "without communication ms",
             "The step without communication.", Better::low);
inline constexpr Field recommended_cap_bytes =
    bytes_field("recommended_cap_bytes", "recommended cap",
                "The cap that tune recommends; nothing where the scenario's own buckets, which no "
                "cap makes, are as good.");
inline constexpr Field recommended_step_ms = ms_field(
    "recommended_step_ms", "recommended ms", "The step with the recommended cap.", Better::low);
inline constexpr Field pays =
    flag_field("pays",
               "Whether tune recommends another cap than DDP's default, or, where buckets close "
               "before they overflow, than the scenario's.");
inline constexpr Field partition_proven =
    flag_field("partition_proven",
               "Whether best_partition_step_ms is as short as lower_bound_ms, so that no partition "
               "is better.");
inline constexpr Field best_pair =
    record_field("best_pair", "The best first cap and cap together; nothing where not searched.");
inline constexpr Field best_even_cap =
    record_field("best_even_cap", "The best cap where it holds for the first bucket too.");
inline constexpr Field best_overflow_cap = record_field(
    "best_overflow_cap", "The best cap where buckets close before they would exceed it.");
inline constexpr Field given = record_field("given", "The buckets of the scenario.");
inline constexpr Field one_bucket = record_field("one_bucket", "All gradients in one bucket.");
inline constexpr Field per_parameter = record_field("per_parameter", "A bucket for each gradient.");
inline constexpr Field mg_wfbp =
    record_field("mg_wfbp",
                 "The buckets that the merge rule of MG-WFBP makes (a published algorithm); "
                 "nothing where gradients are of several types.");
inline constexpr Field caps = list_field(
    "caps",
    "One object for each cap that makes other buckets than the one before, from small to large.");
inline constexpr Field regret =
    ratio_field("regret", "regret",
                "How much longer the step is with the recommended cap than with the best one, as a "
                "share: the largest over `corners` where there are any.",
                Better::low, hundredths_of_percent);
inline constexpr Field corners =
    list_field("corners",
               "One object for each combination of a slower or faster link and slower or faster "
               "kernels, within --uncertainty.");
inline constexpr Field link_factor =
    ratio_field("link", "link takes", "What the link's times are multiplied by.", Better::neither,
                {"x {:.2f}"});
inline constexpr Field compute_factor =
    ratio_field("compute", "kernels take", "What the kernels' times are multiplied by.",
                Better::neither, {"x {:.2f}"});
inline constexpr Field corner_gain =
    ratio_field("gain", "gain", "What the recommended cap saves of the default step.", Better::high,
                hundredths_of_percent)
        .only_for(Audience::people);
inline constexpr Field corner_regret = regret.only_for(Audience::people);

inline constexpr std::array of_tune{&format,
                                    &version_of_program,
                                    &scenario,
                                    &cluster,
                                    &notes,
                                    &best_cap_bytes,
                                    &best_cap_step_ms,
                                    &default_step_ms,
                                    &best_partition,
                                    &best_partition_step_ms,
                                    &lower_bound_ms,
                                    &evaluated,
                                    &without_communication_ms,
                                    &recommended_cap_bytes,
                                    &recommended_step_ms,
                                    &band_low_ms,
                                    &band_high_ms,
                                    &known_from,
                                    &pays,
                                    &partition_proven,
                                    &best_pair,
                                    &best_even_cap,
                                    &best_overflow_cap,
                                    &given,
                                    &one_bucket,
                                    &per_parameter,
                                    &mg_wfbp,
                                    &first_cap_bytes,
                                    &cap_bytes,
                                    &choice_step_ms,
                                    &number_of_buckets,
                                    &largest_bucket_bytes,
                                    &caps,
                                    &highest_cap_bytes,
                                    &regret,
                                    &corners,
                                    &fits_device,
                                    &link_factor,
                                    &compute_factor};

}  // namespace ddpsim::fields
