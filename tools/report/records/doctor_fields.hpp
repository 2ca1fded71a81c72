#pragma once

// What `ddpsim doctor` found of this machine.

#include <array>

#include "tools/report/records/field_kinds.hpp"
#include "tools/report/records/step_fields.hpp"

namespace ddpsim::fields {

inline constexpr Field checks = list_field("checks", "One object for each part of the machine.");
inline constexpr Field part = text_field("part", "part", "What was looked at.").with(most);
inline constexpr Field health =
    text_field(
        "health", "is",
        "good; doubtful: what is measured with it may mislead, or a part of it cannot be used; "
        "missing: something cannot be done without it.")
        .with(most)
        .with(Look{}.to_the_left());
inline constexpr Field found = text_field("found", "found", "What there is, with units.")
                                   .with(much)
                                   .with(Look{}.to_the_left());
inline constexpr Field advice =
    text_field("advice", "what to do", "What would help; nothing where nothing has to be done.")
        .with(much)
        .with(Look{}.to_the_left().or_blank());
inline constexpr Field abilities =
    list_field("abilities", "One object for each thing that people do with ddpsim.");
inline constexpr Field ability =
    text_field("ability", "what", "Something that people do with ddpsim.").with(most);
inline constexpr Field possible =
    text_field("possible", "here", "yes, no, or in part.").with(most).with(Look{}.to_the_left());
inline constexpr Field why_not =
    text_field("because", "because",
               "Why not, or what of it not; nothing where all of it can be done.")
        .with(much)
        .with(Look{}.to_the_left().or_blank());
inline constexpr Field pace =
    record_field("pace", "How evenly the processors compute; nothing where --seconds is 0.");
inline constexpr Field one_pace = flag_field(
    "one_pace", "Whether no processor's pace changes, and none is slower than another, by 25 %.");
inline constexpr Field pace_low_ms =
    ms_field("low_ms", "low ms",
             "The same work was timed on every processor: the smallest of their 10th percentiles.")
        .with(thousandths);
inline constexpr Field pace_high_ms =
    ms_field("high_ms", "high ms",
             "The same work was timed on every processor: the largest of their 90th percentiles.")
        .with(thousandths);
inline constexpr Field pace_stolen =
    ratio_field("stolen_share", "stolen",
                "The share of the processors' time that the host of this virtual machine gave to "
                "other machines (steal time).",
                Better::low, percent);

inline constexpr std::array of_doctor{
    &version_of_program, &checks,       &part,       &health,  &found, &advice,
    &abilities,          &ability,      &possible,   &why_not, &pace,  &one_pace,
    &pace_low_ms,        &pace_high_ms, &pace_stolen};

}  // namespace ddpsim::fields
