#pragma once

// The figures of the order hooks fire in (`--hooks-log`, `ddpsim schedule`), each described once.

#include <array>

#include "tools/report/records/step_fields.hpp"

namespace ddpsim::fields {

inline constexpr Field hooks =
    list_field("hooks", "One object for each hook that fired, in order.");
inline constexpr Field source =
    text_field("source", "source", "Whether the step was predicted or measured.");
inline constexpr Field position =
    count_field("position", "position", "The place in the firing order of the step, from 0.");
inline constexpr Field hook =
    text_field("hook", "hook",
               "The kind of hook of your own; ddp for one that the strategy registers: "
               "DistributedDataParallel's, or under overlap your loop's.");
inline constexpr Field parameter =
    text_field("parameter", "parameter", "The parameter whose gradient the hook fired for.");
inline constexpr Field layer = text_field("layer", "layer", "The layer it belongs to.");
inline constexpr Field micro_batch =
    count_field("micro_batch", "micro-batch", "The micro-batch of the step, from 0.");
inline constexpr Field bucket = count_field(
    "bucket", "bucket", "The bucket its gradient goes into; nothing where there is none.");
inline constexpr Field host_ms =
    ms_field("host_ms", "host ms", "When the host reached the hook, from the start of the step.")
        .with(thousandths);
inline constexpr Field device_ready_ms =
    ms_field("device_ready_ms", "device ready ms",
             "When the gradient or output that the hook fired for was ready on the device, with "
             "the work of the hooks before it done.")
        .with(thousandths);
inline constexpr Field gradient_ms =
    ms_field("gradient_ms", "gradient ms", "When the gradient was ready on the device.")
        .with(thousandths);

inline constexpr std::array of_hooks{
    &format, &version_of_program, &scenario, &hooks,       &strategy, &source,  &position,
    &hook,   &parameter,          &layer,    &micro_batch, &bucket,   &host_ms, &device_ready_ms};

}  // namespace ddpsim::fields
