#pragma once

// What steps take whose ranks' paces are drawn (`run --seeds`), each figure described once.

#include <array>
#include <span>

#include "tools/report/records/field_kinds.hpp"

namespace ddpsim::fields {

inline constexpr Field seeds =
    record_field("seeds",
                 "Of --seeds N: N steps, in each of which every rank's computing time is drawn "
                 "anew (cluster.jitter), and how long they and their exposed communication are.");
inline constexpr Field seed_count =
    count_field("count", "seeds", "How many steps there are, of the seeds 1, 2, ...");
inline constexpr Field drawn_step_p10_ms = ms_field(
    "step_p10_ms", "step p10 ms", "What one in ten of the steps is shorter than.", Better::low);
inline constexpr Field drawn_step_median_ms =
    ms_field("step_median_ms", "median ms", "What half of the steps are shorter than.", Better::low)
        .with(most);
inline constexpr Field drawn_step_p90_ms =
    ms_field("step_p90_ms", "p90 ms", "What one in ten of the steps is longer than.", Better::low);
inline constexpr Field drawn_step_p99_ms =
    ms_field("step_p99_ms", "p99 ms", "What one in a hundred of the steps is longer than.",
             Better::low)
        .with(much);
inline constexpr Field drawn_exposed_p10_ms =
    ms_field("exposed_p10_ms", "exposed p10 ms",
             "Exposed communication, beyond the step without any of the same draws: what one in "
             "ten of the steps has less of.",
             Better::low);
inline constexpr Field drawn_exposed_median_ms =
    ms_field("exposed_median_ms", "exposed median ms",
             "What half of the steps have less exposed communication than.", Better::low)
        .with(much);
inline constexpr Field drawn_exposed_p90_ms =
    ms_field("exposed_p90_ms", "exposed p90 ms",
             "What one in ten of the steps has more exposed communication than.", Better::low);
inline constexpr Field drawn_exposed_p99_ms = ms_field(
    "exposed_p99_ms", "exposed p99 ms",
    "What one in a hundred of the steps has more exposed communication than.", Better::low);

inline constexpr std::array of_seeds{&seeds,
                                     &seed_count,
                                     &drawn_step_p10_ms,
                                     &drawn_step_median_ms,
                                     &drawn_step_p90_ms,
                                     &drawn_step_p99_ms,
                                     &drawn_exposed_p10_ms,
                                     &drawn_exposed_median_ms,
                                     &drawn_exposed_p90_ms,
                                     &drawn_exposed_p99_ms};
/// The figures alone.
inline constexpr std::span of_drawn_steps = std::span(of_seeds).subspan(2);

}  // namespace ddpsim::fields
