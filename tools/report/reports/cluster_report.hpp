#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/scenario/scenario.hpp"
#include "tools/report/records/record.hpp"
#include "tools/study/known_accuracy.hpp"

namespace ddpsim {

/// A name for people; what a scenario writes out itself, and does not name, is "the scenario's own
/// link".
std::string shown_name(const std::string& name, std::string_view what);

/// What a link is called; "links as measured" where a calibration has no name for them.
std::string name_of_link(const Link& link);

/// The cluster in a sentence, for the head of a table: nodes and ranks, device, links, NICs of a
/// node, line rate of a device, the law of collectives, and how much later the slowest rank is.
/// `knowledge`: what the steps below that head are predicted from.
std::string cluster_text(const Scenario& scenario, const Knowledge& knowledge = {});

/// "the slowest of 8 ranks is assumed to compute 0.7 % longer (cluster.skew is not given)": by how
/// much, and where that is from; "" where all ranks are alike.
std::string slowest_rank_text(const Scenario& scenario);

/// Says how kernels and all-reduces over NICs slow each other: as was fitted to an overlap row that
/// went over NICs, else what is assumed, since nobody measured it; "" where the scenario or a
/// calibration says so, or where it is of no effect.
std::string interference_text(const Scenario& scenario, const Knowledge& knowledge);

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

}  // namespace ddpsim
