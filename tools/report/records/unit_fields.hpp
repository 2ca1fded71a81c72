#pragma once

// The figures of units, the groups of parameters that are gathered and reduce-scattered together,
// each described once.

#include <array>

#include "model/timeline/units.hpp"
#include "tools/report/records/step_fields.hpp"

namespace ddpsim::fields {

inline constexpr Field units = list_field("units",
                                          "One object for each unit, in the order in which they "
                                          "are gathered. There only under a strategy "
                                          "that shards, whose list of buckets is empty.");
inline constexpr Field unit_index = count_field("index", "no.", "Which unit it is, from 0.");
inline constexpr Field unit_name =
    text_field("unit", "unit",
               "The first of the modules whose parameters are the unit, or the root; where a "
               "strategy sends gradients in other pieces, gradients and a number.")
        .with(Look{}.to_the_left())
        .with(most);
inline constexpr Field unit_bytes =
    bytes_field("bytes", "size", "The size of the unit's parameters, whole and as they are kept.");
inline constexpr Field unit_parameters =
    list_field("parameters", "The names of the parameters that are in the unit.");
inline constexpr Field unit_exposed_ms =
    ms_field("exposed_ms", "exposed ms",
             "How long the compute stream stood still during the unit's collectives, or during one "
             "of them.",
             Better::low)
        .with(thousandths)
        .with(much);
inline constexpr Field unit_collectives =
    list_field("collectives", "One object for each kind of collective that the unit has.");
inline constexpr Field unit_kind = text_field(
    "kind", "kind",
    "What a collective is for: forward_gather and backward_gather bring whole parameters for a "
    "pass, reduction is the reduce-scatter of gradients, replica_sum the all-reduce of its results "
    "among replicas, updated_gather brings parameters behind the update.");
inline constexpr Field unit_count = count_field(
    "count", "count",
    "In how many micro-batches the step has it; of what sends updated parameters that are no "
    "unit's, how many collectives there are. The instants are those of the last one, exposed "
    "times are of all of them.");
inline constexpr Field unit_sent_bytes =
    bytes_field("port_bytes", "sent",
                "How many bytes a rank sends through its port in the collective, as by a ring: "
                "(W - 1) / W of the whole where W ranks share it.",
                Better::low);
inline constexpr Field unit_ready_ms =
    ms_field("ready_ms", "ready ms",
             "When the collective's input could have been there at the earliest: that of a gather "
             "when the step begins, that of a reduction once the unit's gradients are packed.")
        .with(thousandths);
inline constexpr Field unit_start_ms =
    ms_field("start_ms", "start ms",
             "When the collective began on all ranks, from the start of the step.")
        .with(thousandths);
inline constexpr Field unit_end_ms =
    ms_field("end_ms", "end ms", "When the collective ended, from the start of the step.")
        .with(thousandths);
inline constexpr Field unit_called_ms =
    ms_field("called_ms", "called", "When the collective's input was there.").with(thousandths);
inline constexpr Field unit_issued_ms =
    ms_field("issued_ms", "issued", "When the host began to launch the collective.")
        .with(thousandths);
inline constexpr Field unit_launched_ms =
    ms_field("launched_ms", "launched",
             "When the collective was launched and, on a CPU, handed over to the thread that "
             "communicates.")
        .with(thousandths);
inline constexpr Field unit_held_by = text_field(
    "held_by", "held by",
    "What the collective waited for last, whether or not that exposes it: a key of exposed_by_ms.");

/// The columns of one kind of collective.
struct UnitColumns {
  Field from_to, because;              ///< for people
  Field start_ms, end_ms, exposed_ms;  ///< for programs
};
constexpr UnitColumns unit_columns(std::array<std::string_view, 5> names, std::string_view label,
                                   Importance importance) {
  const auto ms = [](std::string_view name, std::string_view hint) {
    return ms_field(name, name, hint).with(thousandths).only_for(Audience::programs);
  };
  return {
      text_field(names[0], label, "From when to when it ran, in ms from the start of the step.")
          .with(importance)
          .only_for(Audience::people),
      text_field(names[1], label, "How much of it is exposed, with what each cause accounts for.")
          .with(Look{}.to_the_left())
          .with(importance)
          .only_for(Audience::people),
      ms(names[2], "When the collective began on all ranks, from the start of the step."),
      ms(names[3], "When the collective ended, from the start of the step."),
      ms(names[4], "How much of the collective is exposed.")};
}
/// [UnitCollectiveKind]
inline constexpr std::array<UnitColumns, all_unit_collective_kinds.size()> of_unit_kinds{
    unit_columns({"forward_gather", "forward_gather_because", "forward_gather_start_ms",
                  "forward_gather_end_ms", "forward_gather_exposed_ms"},
                 "forward gather", most),
    unit_columns({"backward_gather", "backward_gather_because", "backward_gather_start_ms",
                  "backward_gather_end_ms", "backward_gather_exposed_ms"},
                 "backward gather", much),
    unit_columns({"reduction", "reduction_because", "reduction_start_ms", "reduction_end_ms",
                  "reduction_exposed_ms"},
                 "reduce-scatter", most),
    unit_columns({"replica_sum", "replica_sum_because", "replica_sum_start_ms",
                  "replica_sum_end_ms", "replica_sum_exposed_ms"},
                 "all-reduce", much),
    unit_columns({"updated_gather", "updated_gather_because", "updated_gather_start_ms",
                  "updated_gather_end_ms", "updated_gather_exposed_ms"},
                 "gather behind update", much)};

inline constexpr std::array of_unit{
    &units,           &unit_index,      &unit_name,        &unit_bytes,
    &unit_parameters, &unit_exposed_ms, &unit_collectives, &unit_kind,
    &unit_count,      &unit_sent_bytes, &unit_ready_ms,    &unit_start_ms,
    &unit_end_ms,     &unit_called_ms,  &unit_issued_ms,   &unit_launched_ms,
    &unit_held_by};

}  // namespace ddpsim::fields
