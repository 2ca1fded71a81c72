#pragma once

// The figures of `ddpsim score`, each described once.

#include <array>

#include "tools/report/records/step_fields.hpp"

namespace ddpsim::fields {

inline constexpr Field rows = list_field("rows", "One object for each row.");
inline constexpr Field file = text_field("file", "file", "The file that the row was measured in.");
inline constexpr Field row_label =
    text_field("label", "strategy", "The strategy, with whatever else the row changes.").with(most);
inline constexpr Field measured_ms =
    ms_field("measured_step_ms", "measured ms", "The step as it was measured.", Better::low)
        .with(tenths);
inline constexpr Field predicted_ms =
    ms_field("predicted_step_ms", "predicted ms", "The step as it is predicted.", Better::low)
        .with(tenths);
inline constexpr Field score_error =
    ratio_field("error", "error", "Predicted over measured, less 1.", Better::low, signed_percent)
        .with(most);
inline constexpr Field exposed_error =
    ratio_field("exposed_error", "exposed error",
                "How far the predicted step is off, without the sign, over the communication time "
                "of the naive step in the same file.",
                Better::low, tenths_of_percent);
inline constexpr Field calibration =
    flag_field("calibration", "Whether the row was used in the fit; its error is not counted.");
/// "calibration", or blank
inline constexpr Field calibration_in_words = text_field("calibrates", "", "")
                                                  .with(Look{}.to_the_left().or_blank())
                                                  .with(much)
                                                  .only_for(Audience::people);
inline constexpr Field score_link = text_field(
    "link", "link", "The kind of the link that bounds communication; nothing for one rank.");
inline constexpr Field score_compute =
    text_field("compute", "compute",
               "The number format in which most products are multiplied; nothing where no product "
               "is known.");
inline constexpr Field left_out =
    list_field("left_out",
               "The files that have no row of a strategy that predictions were to be "
               "calibrated on.");
inline constexpr Field predicted_rows =
    count_field("predicted_rows", "predicted rows", "How many rows were predicted, not fitted.");
inline constexpr Field median_error =
    ratio_field("median_error", "median error", "The median of the errors without their signs.",
                Better::low, tenths_of_percent);
inline constexpr Field ninth_decile_error =
    ratio_field("ninth_decile_error", "ninth decile", "Nine in ten errors are no larger than this.",
                Better::low, tenths_of_percent);
inline constexpr Field worst_error = ratio_field(
    "worst_error", "worst error", "The largest of the errors.", Better::low, tenths_of_percent);
inline constexpr Field bias =
    ratio_field("bias", "bias", "The mean of the errors with their signs.", Better::low,
                signed_percent)
        .with(most);
inline constexpr Field group_of =
    text_field("of", "rows of", "What the rows have in common: ranks, or the kind of link.");
inline constexpr Field score_groups = list_field(
    "groups", "The same figures by number of ranks and by the kind of link that decides.");
inline constexpr Field median_exposed_error =
    ratio_field("median_exposed_error", "median exposed error", "The median of the exposed errors.",
                Better::low, tenths_of_percent);

inline constexpr std::array of_score{&format,
                                     &version_of_program,
                                     &rows,
                                     &file,
                                     &strategy,
                                     &bucket_cap_bytes,
                                     &measured_ms,
                                     &predicted_ms,
                                     &score_error,
                                     &calibration,
                                     &row_label,
                                     &exposed_error,
                                     &left_out,
                                     &predicted_rows,
                                     &median_error,
                                     &ninth_decile_error,
                                     &worst_error,
                                     &ranks,
                                     &device_name,
                                     &score_link,
                                     &score_compute,
                                     &bias,
                                     &group_of,
                                     &score_groups,
                                     &median_exposed_error};

}  // namespace ddpsim::fields
