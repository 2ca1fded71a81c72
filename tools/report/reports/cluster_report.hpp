#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/text/settings.hpp"
#include "tools/report/records/record.hpp"

namespace ddpsim {

/// A name for people; what a scenario writes out itself, and does not name, is "the scenario's own
/// link".
std::string shown_name(const std::string& name, std::string_view what);

/// The cluster in a sentence, for the head of a table: nodes and ranks, device, links, NICs of a
/// node, line rate of a device, the law of collectives, and how much later the slowest rank is.
std::string cluster_text(const Scenario& scenario);

/// "the slowest of 8 ranks is assumed to compute 0.7 % longer (cluster.skew is not given)": by how
/// much, and where that is from; "" where all ranks are alike.
std::string slowest_rank_text(const Scenario& scenario);

/// "rank 5 computes 1.3 times as long": the exceptions; "" where there are none.
std::string exceptions_text(const CalibratedCluster& cluster);

/// Says that nobody measured how kernels and all-reduces over NICs slow each other, and what is
/// assumed instead; "" where it is known, given, or of no effect.
std::string assumed_interference_text(const Scenario& scenario);

/// The facts of a cluster as a record, for programs.
Record cluster_record(const Scenario& scenario);

/// A number, or where nodes differ a list of one for each node.
FieldValue ranks_value(const RanksPerNode& ranks);

/// The sizes that were measured.
struct SizeSpan {
  Bytes least, most;
};
/// The sizes of the table of all-reduces, where a table prices them; none: a law does.
std::optional<SizeSpan> covered_sizes(const CalibratedCluster& cluster);

/// What of the cluster does not do what one may expect, a sentence each: `settings` of the command
/// line that change nothing, and NICs that are not what bounds large all-reduces.
std::vector<std::string> cluster_notes(const Scenario& scenario,
                                       const std::vector<Setting>& settings);

}  // namespace ddpsim
