#pragma once

// The figures of consecutive steps (`run --steps`, `--run-ahead`, `--ddp-statistics`), each
// described once.

#include <array>

#include "tools/report/records/step_fields.hpp"

namespace ddpsim::fields {

// Steps one after the other.
inline constexpr Field steps = record_field(
    "steps", "Consecutive steps from the first on, each begun when the last has ended.");
inline constexpr Field step_count = count_field("count", "steps", "How many steps there are.");
inline constexpr Field total_ms =
    ms_field("total_ms", "sum ms", "The lengths of all steps, added up.", Better::low).with(much);
inline constexpr Field kinds =
    list_field("kinds", "One object for each kind of step that occurs, with its figures.");
inline constexpr Field phase =
    text_field("phase", "phase",
               "What distinguishes the step from others: first buckets, rebuilt ones, "
               "the steady state.")
        .with(Look{}.or_blank())
        .with(much);
inline constexpr Field steps_of_kind =
    count_field("steps", "steps", "How many of the steps are of this kind.");
inline constexpr Field sequence =
    list_field("sequence", "For every step, the place of its kind in `kinds`, from 0.");
/// "1-9"
inline constexpr Field which_steps =
    text_field("steps", "steps", "The steps of the row.").with(most).only_for(Audience::people);
inline constexpr Field bucket_count =
    count_field("buckets", "buckets", "How many buckets the step has.").with(Look{}.or_blank());

// The steps with a host that runs ahead.
inline constexpr Field run_ahead = record_field(
    "run_ahead",
    "The same steps as one run, in which the host launches steps ahead of the device; waits for "
    "batches (training.input) are left out of all its figures.");
inline constexpr Field mean_period_ms =
    ms_field("mean_period_ms", "mean period ms", "The mean of periods_ms.", Better::low);
inline constexpr Field one_after_the_other_ms = ms_field(
    "one_after_the_other_ms", "one after the other ms",
    "How long the same steps take if each begins when the one before has ended.", Better::low);
inline constexpr Field gain =
    ratio_field("gain", "gain",
                "How much shorter all steps are together than one after the other, as "
                "a share.",
                Better::high, hundredths_of_percent);
inline constexpr Field host_waited_ms =
    ms_field("host_waited_ms", "host waited ms",
             "How long the host stood still for the timers of DDP's logger.", Better::low)
        .with(thousandths);
inline constexpr Field host_waits =
    list_field("host_waits", "One object for each step at whose forward the host waited.");
inline constexpr Field wait_step = count_field("step", "step", "The step, counted from 1.");
inline constexpr Field wait_ms =
    ms_field("ms", "ms", "How long the host waited in that step.", Better::low);
inline constexpr Field periods_ms{
    .name = "periods_ms",
    .label = "periods ms",
    .kind = ValueKind::list,
    .unit = "ms",
    .hint = "For every step, the time from the end of the step before to its own end.",
    .better = Better::low};
inline constexpr Field alone_ms =
    ms_field("alone_ms", "alone ms", "A step begun when the one before has ended.", Better::low)
        .with(thousandths)
        .only_for(Audience::people);
inline constexpr Field period_ms =
    ms_field("period_ms", "period ms", "From the end of the step before to its own.", Better::low)
        .with(thousandths)
        .with(much)
        .only_for(Audience::people);

// What DDP's own logger would say.
inline constexpr Field ddp_statistics =
    record_field("ddp_statistics", "The averages of DDP's logger; nothing where it does not run.");
constexpr Field ns_field(std::string_view name, std::string_view label, std::string_view hint,
                         Better better) {
  return {.name = name,
          .label = label,
          .kind = ValueKind::whole,
          .unit = "ns",
          .hint = hint,
          .better = better,
          .look = {"{:.3f}", 1e-6}};  // tables show milliseconds
}
inline constexpr Field avg_forward_compute_time_ns =
    ns_field("avg_forward_compute_time_ns", "avg_forward_compute_time",
             "From the start of the forward pass to its end.", Better::low);
inline constexpr Field avg_backward_compute_time_ns =
    ns_field("avg_backward_compute_time_ns", "avg_backward_compute_time",
             "From the end of the forward pass to the end of the backward pass, with the host's "
             "gaps and the copies into buckets.",
             Better::low);
inline constexpr Field avg_backward_comm_time_ns =
    ns_field("avg_backward_comm_time_ns", "avg_backward_comm_time",
             "From the launch of the first collective to the last copy out of a bucket, with the "
             "pauses between collectives.",
             Better::low);
inline constexpr Field avg_backward_compute_comm_overlap_time_ns =
    ns_field("avg_backward_compute_comm_overlap_time_ns", "avg_backward_compute_comm_overlap_time",
             "From the launch of the first collective to the end of the backward pass, whether or "
             "not the link was busy.",
             Better::high);
inline constexpr Field samples =
    count_field("samples", "samples", "How many iterations were averaged.");
inline constexpr Field busy_overlap_ms =
    ms_field("busy_overlap_ms", "busy overlap ms",
             "ddpsim's own figure: communication that ran beside kernels.", Better::high)
        .with(much)
        .only_for(Audience::people);

inline constexpr std::array of_steps{&steps,
                                     &step_count,
                                     &total_ms,
                                     &kinds,
                                     &sequence,
                                     &run_ahead,
                                     &mean_period_ms,
                                     &one_after_the_other_ms,
                                     &gain,
                                     &host_waited_ms,
                                     &host_waits,
                                     &wait_step,
                                     &wait_ms,
                                     &periods_ms,
                                     &ddp_statistics,
                                     &avg_forward_compute_time_ns,
                                     &avg_backward_compute_time_ns,
                                     &avg_backward_comm_time_ns,
                                     &avg_backward_compute_comm_overlap_time_ns,
                                     &samples};
/// What a kind of step has besides the figures of `run`.
inline constexpr std::array of_kinds{&phase, &steps_of_kind};

}  // namespace ddpsim::fields
