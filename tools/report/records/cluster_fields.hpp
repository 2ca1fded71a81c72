#pragma once

// The cluster that results are of, each fact described once.

#include <array>

#include "tools/report/records/field_kinds.hpp"

namespace ddpsim::fields {

inline constexpr Field cluster = record_field(
    "cluster",
    "The cluster that the results are for: nodes, devices, links, and how collectives are priced.");
inline constexpr Field nodes = count_field("nodes", "nodes", "How many nodes there are.");
inline constexpr Field ranks_per_node =
    count_field("ranks_per_node", "ranks per node",
                "How many ranks a node has, one device each; where nodes differ, a list of one "
                "number for each node.");
inline constexpr Field device_name = text_field(
    "device", "device",
    "The device of each rank; \"h100-sxm (changed)\" where keys of that entry were changed.");
inline constexpr Field intra_node =
    text_field("intra_node", "intra_node",
               "What joins the ranks of a node; nothing if it has only one. \"nvlink4 (changed)\": "
               "another link "
               "than that entry, not only with other nics or carries.");
inline constexpr Field inter_node =
    text_field("inter_node", "inter_node",
               "What joins the nodes; nothing if there is one. A link that was changed as "
               "intra_node says.");
inline constexpr Field nics_per_node =
    count_field("nics_per_node", "NICs per node",
                "How many NICs a node has, or the node with the fewest; nothing if there is one "
                "node, or if a measured table does not tell.");
inline constexpr Field line_rate{
    .name = "line_rate_bytes_per_second",
    .label = "line rate per device",
    .kind = ValueKind::real,
    .unit = "bytes/s",
    .hint =
        "What a device can send at most: its share of the NICs of its node, or its port to the "
        "others where there is one node; nothing where only all-reduces were measured."};
inline constexpr Field law = text_field(
    "law", "law",
    "How collectives are priced: nccl (a model of NCCL's algorithms), gloo (the same of Gloo), "
    "alpha-beta (latency plus bytes over bandwidth) or table (measured all-reduces).");

inline constexpr Field slowest_rank =
    ratio_field("slowest_rank", "slowest rank",
                "How many times as long as a typical rank the slowest rank takes to compute.",
                Better::low, tenths_of_percent);

inline constexpr Field slowest_rank_from =
    text_field("slowest_rank_from", "slowest rank from",
               "Where slowest_rank is from: calibration (it was measured), profile (its "
               "step_spread), scenario "
               "(cluster.skew and jitter), or assumed; nothing where all ranks are alike.");

inline constexpr Field exceptions =
    list_field("exceptions",
               "The ranks that differ from the others (cluster.exceptions), one object for each "
               "entry; there only if there are some.");
inline constexpr Field exception_rank = count_field("rank", "rank", "The rank that differs.");
inline constexpr Field exception_node =
    count_field("node", "node", "The node whose ranks or NICs differ.");
inline constexpr Field exception_compute = ratio_field(
    "compute", "compute", "How many times as long as on other ranks computation takes there.",
    Better::low, hundredths);
inline constexpr Field exception_nic{.name = "nic_bytes_per_second",
                                     .label = "NIC",
                                     .kind = ValueKind::real,
                                     .unit = "bytes/s",
                                     .hint = "What each NIC of the node carries."};
inline constexpr Field exception_pause =
    ms_field("pause_ms", "pause ms", "How long the host of the rank stands still in each step.",
             Better::low);
inline constexpr Field exception_at =
    ratio_field("at", "at", "The share of what the passes compute by which the pause comes.",
                Better::neither, percent);

inline constexpr std::array of_cluster{
    &nodes,          &ranks_per_node,    &device_name,   &intra_node,
    &inter_node,     &nics_per_node,     &line_rate,     &law,
    &slowest_rank,   &slowest_rank_from, &exceptions,    &exception_rank,
    &exception_node, &exception_compute, &exception_nic, &exception_pause,
    &exception_at};

}  // namespace ddpsim::fields
