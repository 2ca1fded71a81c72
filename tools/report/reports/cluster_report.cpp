#include "tools/report/reports/cluster_report.hpp"

#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "model/base/printable.hpp"
#include "model/cluster/deciding_link.hpp"
#include "model/cost/collective.hpp"
#include "model/cost/collective_ports.hpp"
#include "model/cost/cost_model.hpp"
#include "model/cost/interference.hpp"
#include "model/cost/port_law.hpp"
#include "model/cost/table_port.hpp"
#include "tools/report/records/cluster_fields.hpp"
#include "tools/report/reports/rank_exceptions.hpp"
#include "tools/study/host_rate.hpp"

namespace ddpsim {
namespace {

/// What large messages reach on the bus by the table that prices the all-reduces of one node, where
/// the bandwidth beside it was fitted to that table; none elsewhere.
std::optional<Bandwidth> reached_by_table(const CalibratedCluster& cluster) {
  const Link& link = cluster.intra_node;
  if (cluster.nodes > 1 || cluster.ranks() == 1 || link.all_reduce.empty() || cluster.calibration ||
      CollectiveLaw(cluster).name() != std::string("table"))
    return std::nullopt;
  if (link.carries != 1 && link.kind_from.empty() && !rate_is_of_table(cluster))
    return std::nullopt;
  return reached_on_bus(link.all_reduce, link.table_ranks > 0 ? link.table_ranks : cluster.ranks());
}

/// The line rate of one device, between nodes by the slowest NIC; zero where it is not known. A
/// link of no kind that has a table of all-reduces has a bandwidth that was fitted to the table: no
/// port has it. A calibration measured all-reduces over whatever link there was.
Bandwidth line_rate(const CalibratedCluster& cluster) {
  const Link& link = deciding_link(cluster);
  if (cluster.calibration && !cluster.calibration->all_reduce.empty()) return {};
  if (link.kind == LinkKind::plain && !link.all_reduce.empty()) return {};
  if (reached_by_table(cluster)) return {};
  const int ranks = cluster.ranks_per_node.largest();  // of the node whose devices share the most
  if (cluster.nodes == 1) return ranks > 1 ? link.bandwidth : Bandwidth{};
  const bool measured = CollectiveLaw(cluster).name() == std::string("table");
  const Bandwidth nic = measured ? link.bandwidth : slowest_nic(cluster);
  return {nic.bytes_per_second * nics_of_node(cluster, ranks) / ranks};
}

/// What large messages reach on the bus where the host's memory, through which GPUs of a node reach
/// each other, bounds them and that is less than the link's line; none elsewhere.
std::optional<Bandwidth> reached_through_host(const CalibratedCluster& cluster) {
  if (!crosses_host(cluster) || cluster.ranks() == 1 ||
      cluster.collectives == CollectiveModel::alpha_beta)
    return std::nullopt;
  const CollectiveLaw law(cluster);
  const CollectiveBound bound = law.all_reduce(GiB).choice.bound;
  if (law.name() == std::string("table") ||
      (bound != CollectiveBound::port && bound != CollectiveBound::host_memory))
    return std::nullopt;
  const Bandwidth reached = bus_through_host(cluster);
  if (cluster.nodes == 1 && reached >= cluster.intra_node.bandwidth) return std::nullopt;
  return reached;
}

/// "large messages reach 6.3 GB/s on the bus", and whether that is known.
std::string through_host_text(const CalibratedCluster& cluster, Bandwidth reached) {
  const std::optional<HostRates> rates = host_rates_of(cluster);
  if (!rates) return fmt::format("large messages reach {} on the bus", to_string(reached));
  return fmt::format(
      "large messages are assumed to reach {} on the bus (hosts differ, {:.1f} to {:.1f} GB/s: "
      "write what yours do as intra_node.carries, or import nccl-tests)",
      to_string(reached), rates->slowest.bytes_per_second * 1e-9,
      rates->quickest.bytes_per_second * 1e-9);
}

/// "450 GB/s of line rate per GPU".
std::string rate_text(const CalibratedCluster& cluster) {
  if (const auto reached = reached_by_table(cluster))
    return fmt::format("{} that large messages reach on the bus", to_string(*reached));
  const Bandwidth rate = line_rate(cluster);
  if (!(rate.bytes_per_second > 0)) return "line rate not known";
  const std::string_view one = cluster.device.compute_capability > 0 ? "GPU" : "device";
  const bool is_reached = deciding_link(cluster).carries == 1;
  const std::optional<Bandwidth> memory = reached_through_host(cluster);
  if (memory && is_reached) return through_host_text(cluster, *memory);
  return fmt::format("{} {} per {}{}", to_string(rate),
                     is_reached ? "that large messages reach" : "of line rate", one,
                     memory ? ", but " + through_host_text(cluster, *memory) : "");
}

/// Is the number of NICs of a node known, or a rule of its kind of network? Nothing tells it of a
/// network of no kind whose all-reduces were measured.
bool knows_nics(const CalibratedCluster& cluster) {
  const Link& network = cluster.inter_node;
  const bool measured = !network.all_reduce.empty() ||
                        (cluster.calibration && !cluster.calibration->all_reduce.empty());
  return network.nics > 0 || network.kind != LinkKind::plain || !measured;
}

/// Is it what the reader calls an entry that a scenario writes out instead of naming it?
bool is_own(const std::string& name) {
  return name == "inline";
}

/// Whose kernels price a step where the cluster names another device than its calibration; "" where
/// it does not.
std::string kernels_text(const CalibratedCluster& cluster) {
  if (!cluster.calibration || cluster.calibration->tasks.empty()) return "";
  const std::string measured = printable(cluster.calibration->cpu);
  if (measured.empty() || measured == cluster.device.name) return "";
  return fmt::format("; kernels as measured on {} (cluster.calibration)", measured);
}

/// Over what a calibration measured the all-reduces that price a step; "" where none does.
std::string measured_over(const CalibratedCluster& cluster) {
  if (!cluster.calibration || cluster.calibration->all_reduce.empty()) return "";
  const std::string link = printable(cluster.calibration->link);
  return link.empty() || CollectiveLaw(cluster).name() != std::string("table")
             ? ""
             : fmt::format(", measured over {}", link);
}

constexpr std::string_view one_nic_taken =
    "to take as many multiprocessors from kernels as over 1 NIC a node (inter_node.nics is not "
    "given)";

/// Says how strong interference is that was fitted to an overlap row over NICs.
std::string fitted_interference(const Cluster& cluster, double strength) {
  if (crosses_host(cluster))
    return fmt::format(
        "an all-reduce between nodes slows kernels {:.2f} times as much as through the host's "
        "memory of one node, as fitted to the overlap row",
        strength);
  constexpr double lost = InterferenceLaw::lost_over_pcie;
  const double slowdown = 1 + strength * (1 / (1 - lost) - 1);
  return fmt::format(
      "an all-reduce over NICs loses {:.0f} % of its bandwidth beside kernels, as fitted to the "
      "overlap row{}",
      100 * (1 - 1 / slowdown),
      knows_nics(cluster) ? "" : fmt::format(", and is assumed {}", one_nic_taken));
}

/// What is said of interference over NICs that nobody measured. A row that did not go over NICs may
/// have fitted its strength.
std::string assumed_interference(const Cluster& cluster, double strength) {
  const std::string scaled =
      strength == 1 ? ""
                    : fmt::format(
                          "; interference is {:.2f} times as strong, fitted to a row that did not "
                          "go over NICs",
                          strength);
  if (crosses_host(cluster))
    return "an all-reduce between nodes is assumed to slow kernels as through the host's memory of "
           "one node (cluster.interference is not given)" +
           scaled;
  return fmt::format(
      "an all-reduce over NICs is assumed to lose {:.0f} % of its bandwidth beside kernels, as "
      "over PCIe (cluster.interference is not given){}{}",
      100 * InterferenceLaw::lost_over_pcie,
      knows_nics(cluster) ? "" : fmt::format(", and {}", one_nic_taken), scaled);
}

}  // namespace

std::string shown_name(const std::string& name, std::string_view what) {
  return is_own(name) ? fmt::format("the scenario's own {}", what) : name;
}

std::string name_of_link(const Link& link) {
  if (link.name.empty()) return "links as measured";
  return shown_name(link.name, "link");
}

std::string cluster_text(const Scenario& scenario, const Knowledge& knowledge) {
  const CalibratedCluster& cluster = scenario.cluster;
  const RanksPerNode& ranks = cluster.ranks_per_node;
  std::string inside;
  if (ranks.largest() > 1) inside = " by " + name_of_link(cluster.intra_node);
  if (ranks.largest() > 1 && through_host(cluster)) inside += " through the host's memory";
  std::string text = fmt::format(
      "{} node{} {} {} {}{}", cluster.nodes, cluster.nodes == 1 ? "" : "s",
      ranks.equal() ? "x" : "of", to_string(ranks),
      is_own(cluster.device.name) ? "ranks (the scenario's own device)" : cluster.device.name,
      inside);
  if (cluster.nodes > 1) {
    const int nics = nics_per_node(cluster);
    const bool some_have_more = nics_of_node(cluster, ranks.largest()) > nics;
    text += knows_nics(cluster)
                ? fmt::format("; {} NIC{}{} a node by {}", nics, nics == 1 ? "" : "s",
                              some_have_more ? " or more" : "", name_of_link(cluster.inter_node))
                : "; nodes by " + name_of_link(cluster.inter_node);
  }
  if (cluster.ranks() > 1)
    text += fmt::format(", {}; all-reduce law: {}{}", rate_text(cluster),
                        CollectiveLaw(cluster).name(), measured_over(cluster));
  text += kernels_text(cluster);
  if (const std::string slowest = slowest_rank_text(scenario); !slowest.empty())
    text += "; " + slowest;
  if (const std::string exceptions = exceptions_text(scenario.cluster); !exceptions.empty())
    text += "; " + exceptions;
  if (const std::string slowing = interference_text(scenario, knowledge); !slowing.empty())
    text += "; " + slowing;
  return text;
}

std::string slowest_rank_text(const Scenario& scenario) {
  const CalibratedCluster& cluster = scenario.cluster;
  const double slowest = slowest_rank(cluster, scenario.workload.step_spread);
  if (slowest <= 1) return "";
  const SkewSource source = skew_source(cluster, scenario.workload.step_spread);
  const bool changes = cluster.jitter.value_or(0) > 0;
  const auto [verb, from] = [&]() -> std::pair<std::string_view, std::string_view> {
    switch (source) {
      case SkewSource::calibration:
        return {"computes", ", as the calibration measured"};
      case SkewSource::profile:
        return {"is expected to compute", " (the profile's step_spread)"};
      case SkewSource::scenario:
        return {"is expected to compute",
                changes ? " (cluster.skew and jitter)" : " (cluster.skew)"};
      case SkewSource::assumed:
        if (changes)
          return {"is expected to compute", " (cluster.jitter; cluster.skew is not given)"};
        return {"is assumed to compute", " (cluster.skew is not given)"};
    }
    return {};
  }();
  return fmt::format("the slowest of {} ranks {} {:.1f} % longer{}", cluster.ranks(), verb,
                     100 * (slowest - 1), from);
}

std::string interference_text(const Scenario& scenario, const Knowledge& knowledge) {
  const CalibratedCluster& cluster = scenario.cluster;
  const bool measured = cluster.calibration && !cluster.calibration->interference.empty();
  if (!over_nics(cluster) || measured || cluster.interference) return "";
  return knowledge.fitted_over_nics ? fitted_interference(cluster, knowledge.interference)
                                    : assumed_interference(cluster, knowledge.interference);
}

FieldValue ranks_value(const RanksPerNode& ranks) {
  if (ranks.equal()) return ranks.largest();
  const std::vector<int>& each = ranks.of_each();
  return List(each.begin(), each.end());
}

Record cluster_record(const Scenario& scenario) {
  const CalibratedCluster& cluster = scenario.cluster;
  const bool inside = cluster.ranks_per_node.largest() > 1, between = cluster.nodes > 1;
  const double rate = line_rate(cluster).bytes_per_second;
  const auto link_or_nothing = [](bool there, const Link& link) {
    return there && !link.name.empty() ? FieldValue(link.name) : FieldValue();
  };
  Record record;
  record.add(fields::nodes, cluster.nodes)
      .add(fields::ranks_per_node, ranks_value(cluster.ranks_per_node))
      .add(fields::device_name, cluster.device.name)
      .add(fields::intra_node, link_or_nothing(inside, cluster.intra_node))
      .add(fields::inter_node, link_or_nothing(between, cluster.inter_node))
      .add(fields::nics_per_node,
           between && knows_nics(cluster) ? FieldValue(nics_per_node(cluster)) : FieldValue())
      .add(fields::line_rate,
           rate > 0 && deciding_link(cluster).carries != 1 ? FieldValue(rate) : FieldValue())
      .add(fields::law,
           cluster.ranks() > 1 ? FieldValue(CollectiveLaw(cluster).name()) : FieldValue())
      .add(fields::slowest_rank, slowest_rank(cluster, scenario.workload.step_spread))
      .add(fields::slowest_rank_from,
           slowest_rank(cluster, scenario.workload.step_spread) > 1
               ? FieldValue(name_of(skew_source(cluster, scenario.workload.step_spread)))
               : FieldValue());
  if (cluster.exceptions.empty()) return record;
  List exceptions;
  for (const RankException& exception : cluster.exceptions)
    exceptions.emplace_back(exception_record(exception));
  record.add(fields::exceptions, std::move(exceptions));
  return record;
}

std::optional<SizeSpan> covered_sizes(const CalibratedCluster& cluster) {
  if (cluster.ranks() == 1 || CollectiveLaw(cluster).name() != std::string("table"))
    return std::nullopt;
  if (cluster.calibration && !cluster.calibration->all_reduce.empty())
    return SizeSpan{cluster.calibration->all_reduce.front().size,
                    cluster.calibration->all_reduce.back().size};
  const AllReduceTable& table = deciding_link(cluster).all_reduce;
  return table.empty() ? std::nullopt
                       : std::optional(SizeSpan{table.front().first, table.back().first});
}

}  // namespace ddpsim
