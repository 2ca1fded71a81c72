#pragma once

// The figures of `ddpsim validate`, each described once.

#include <array>

#include "tools/report/records/step_fields.hpp"

namespace ddpsim::fields {

inline constexpr Look both_sides{.pattern = "{:.2f}", .between = " | "};

/// A figure as predicted and as measured, in one cell.
constexpr Field pair_of(Field field) {
  field.look = both_sides;
  field.audience = Audience::people;
  return field;
}

inline constexpr Field mode = text_field("mode", "mode", "Backend, ranks and link of the run.");
inline constexpr Field busy_kernels =
    flag_field("busy_kernels",
               "Whether loops of the predicted length ran in place of kernels whose shapes are not "
               "known.");
inline constexpr Field stolen_share =
    ratio_field("stolen_share", "stolen",
                "The share of the processors' time that the host of this virtual machine gave to "
                "other machines meanwhile.",
                Better::low, percent);
inline constexpr Field median_step_error =
    ratio_field("median_step_error", "median error",
                "The median over strategies of the step's error, without its sign.", Better::low,
                tenths_of_percent);

// What the prediction rests on.
inline constexpr Field calibrated =
    record_field("calibrated", "The machine whose measurements the prediction is made from.");
inline constexpr Field machine = text_field("machine", "machine", "The name of the machine.");
inline constexpr Field cpu = text_field("cpu", "CPU", "The processor of the machine.");
inline constexpr Field link = text_field("link", "link", "What joined the ranks.");
inline constexpr Field versions =
    text_field("versions", "versions", "The libraries that were measured.");
inline constexpr Field date = text_field("date", "date", "When it was measured.");

// One strategy.
inline constexpr Field predicted =
    record_field("predicted", "The figures of the simulated step, as in a run's results.");
inline constexpr Field measured =
    record_field("measured", "The figures of the measured step: medians over steps and ranks.");
inline constexpr Field error =
    record_field("error",
                 "Predicted minus measured, over measured; for the overlap, the "
                 "difference.");
inline constexpr Field predicted_step_ms =
    step_ms.labelled("predicted ms").only_for(Audience::people);
inline constexpr Field measured_step_ms =
    step_ms.labelled("measured ms").only_for(Audience::people);
inline constexpr Field step_error =
    ratio_field("step_error", "error",
                "The predicted step minus the measured one, over the measured one.", Better::low,
                signed_percent)
        .with(most)
        .only_for(Audience::people);
inline constexpr Field communication_error = step_error.with(usual);
inline constexpr Field end_error =
    ratio_field("end_error", "end error",
                "The predicted end of the bucket minus the measured one, over the "
                "measured one.",
                Better::low, signed_percent)
        .with(most)
        .only_for(Audience::people);
/// "12.1 - 12.9 !"
inline constexpr Field range_in_words =
    text_field("range", "p10 - p90 ms", "First and ninth decile of the measured steps.")
        .with(much)
        .only_for(Audience::people);
inline constexpr Field overlap_in_words =
    text_field("overlaps", "overlap", "The overlap, predicted and measured.")
        .with(much)
        .only_for(Audience::people);
inline constexpr Field schedule_fingerprint =
    text_field("schedule", "schedule",
               "The fingerprint of the schedule, which was both simulated and run by every rank.");
inline constexpr Field waited_for =
    text_field("waited_for", "waited for",
               "The rank for which one that is no exception waited longest, at the buckets' last "
               "all-reduces; nothing where it is no exception either. There only if there are "
               "cluster.exceptions.");
inline constexpr Field waited_ms =
    ms_field("waited_ms", "waited ms",
             "How long it waited for that rank in a step, all buckets together; measured: the mean "
             "over steps.",
             Better::low);
inline constexpr Field waited_in_words =
    text_field("waits", "waits for",
               "The rank that is waited for longest, and for how long in a step.")
        .with(Look{}.to_the_left())
        .only_for(Audience::people);
inline constexpr Field unsteady = flag_field(
    "unsteady", "Whether the measured steps differ from one another by more than a tenth.");
inline constexpr Field gradients =
    record_field("gradients", "Whether the averaged gradients are right.");
inline constexpr Field identical =
    flag_field("identical", "Whether all ranks have the same gradients, bit for bit.");
inline constexpr Field worst_over_tolerance =
    ratio_field("worst_over_tolerance", "worst over tolerance",
                "The largest difference between an averaged gradient and the mean of the ranks' "
                "own gradients, over "
                "what rounding allows.",
                Better::low, hundredths);
inline constexpr Field compared_with_mean =
    flag_field("compared_with_mean",
               "Whether gradients were compared with the mean: some comm hooks drop a part "
               "of each gradient.");
inline constexpr Field wrong =
    count_field("wrong", "wrong",
                "How many gradients differ between ranks, where some do and none may; else how "
                "many differ from the mean by more than rounding allows.",
                Better::low);
inline constexpr Field first_wrong = text_field(
    "first_wrong", "first wrong", "The parameter of the first of them; nothing where none is.");
inline constexpr Field overflows =
    count_field("overflows", "overflows",
                "How many numbers in gradients, of all ranks and steps, are beyond the range of "
                "16 bits.",
                Better::low);

// The errors: fields of the figures' names.
constexpr Field fraction_of(Field field) {
  field.unit = "";
  field.hint = "The error of the prediction: predicted minus measured, over measured.";
  field.better = Better::low;
  field.look = signed_percent;
  return field;
}
inline constexpr Field error_of_step = fraction_of(step_ms),
                       error_of_forward = fraction_of(forward_ms),
                       error_of_backward = fraction_of(backward_ms),
                       error_of_optimizer = fraction_of(optimizer_ms),
                       error_of_communication = fraction_of(communication_ms),
                       error_of_exposed = fraction_of(exposed_ms),
                       error_of_ready = fraction_of(ready_ms),
                       error_of_start = fraction_of(start_ms), error_of_end = fraction_of(end_ms);
inline constexpr Field difference_of_overlap = [] {
  Field field = fraction_of(overlap_ratio);
  field.hint = "The error of the prediction: predicted minus measured.";
  return field;
}();

// The spread of the measured steps.
inline constexpr Field spread = record_field("spread", "How much the measured steps differ.");
inline constexpr Field step_low_ms = ms_field(
    "step_low_ms", "p10 ms", "One in ten measured steps took no longer than this.", Better::low);
inline constexpr Field step_high_ms = ms_field(
    "step_high_ms", "p90 ms", "Nine in ten measured steps took no longer than this.", Better::low);
inline constexpr Field repeats = count_field("repeats", "repeats", "How many steps were measured.");
inline constexpr Field outliers = count_field(
    "outliers", "outliers", "How many measured steps are far from the others.", Better::low);

// Where the time of rank 0 goes.
inline constexpr Field parts = record_field("parts", "What the step of rank 0 is made of.");
inline constexpr Field compute_ms =
    ms_field("compute_ms", "compute", "Time of the step in which a kernel ran.", Better::low)
        .with(signed_hundredths);
inline constexpr Field communication_part_ms =
    ms_field("communication_ms", "communication",
             "Time of the step in which a collective ran, and no kernel.", Better::low)
        .with(signed_hundredths);
inline constexpr Field waiting_ms =
    ms_field("waiting_ms", "waiting",
             "Time of the step in which a collective waited for other ranks, and nothing ran.",
             Better::low)
        .with(signed_hundredths);
inline constexpr Field launch_ms =
    ms_field("launch_ms", "launch",
             "The rest of the step: the host's launches and hooks, waking threads, and waiting for "
             "the last rank to finish.",
             Better::low)
        .with(signed_hundredths);

// A field as files name it, where tables have it under a shorter name.
constexpr Field in_files(Field field, std::string_view name) {
  field.name = name;
  field.audience = Audience::everybody;
  return field;
}
inline constexpr Field validated_label = in_files(strategy_in_words, strategy_in_words.name),
                       validated_prediction = in_files(predicted_step_ms, "predicted_step_ms"),
                       validated_measurement = in_files(measured_step_ms, "measured_step_ms"),
                       validated_error = in_files(step_error, step_error.name);

inline constexpr std::array of_validate{&format,
                                        &validated_label,
                                        &validated_prediction,
                                        &validated_measurement,
                                        &validated_error,
                                        &version_of_program,
                                        &scenario,
                                        &mode,
                                        &ranks,
                                        &cluster,
                                        &busy_kernels,
                                        &stolen_share,
                                        &calibrated,
                                        &machine,
                                        &cpu,
                                        &link,
                                        &versions,
                                        &date,
                                        &results,
                                        &strategy,
                                        &bucket_cap_bytes,
                                        &set,
                                        &schedule_fingerprint,
                                        &predicted,
                                        &measured,
                                        &error,
                                        &gradients,
                                        &identical,
                                        &worst_over_tolerance,
                                        &compared_with_mean,
                                        &wrong,
                                        &first_wrong,
                                        &overflows,
                                        &unsteady,
                                        &waited_for,
                                        &waited_ms,
                                        &spread,
                                        &step_low_ms,
                                        &step_high_ms,
                                        &repeats,
                                        &outliers,
                                        &parts,
                                        &compute_ms,
                                        &communication_part_ms,
                                        &waiting_ms,
                                        &launch_ms,
                                        &median_step_error};

}  // namespace ddpsim::fields
