#include "tools/report/reports/cluster_notes.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "model/base/printable.hpp"
#include "model/cluster/deciding_link.hpp"
#include "model/cluster/nvlink.hpp"
#include "model/cost/collective.hpp"
#include "model/cost/collective_ports.hpp"
#include "model/cost/table_port.hpp"
#include "scenarios/reader/cluster/device_reader.hpp"
#include "scenarios/reader/cluster/foreign_operations.hpp"
#include "scenarios/reader/cluster/launch_reader.hpp"
#include "scenarios/reader/scenario/scenario_settings.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/described_report.hpp"
#include "tools/report/reports/full_nodes.hpp"
#include "tools/report/reports/idle_links.hpp"
#include "tools/report/reports/kept_links.hpp"
#include "tools/report/reports/kept_nics.hpp"
#include "tools/report/reports/kept_price.hpp"
#include "tools/report/reports/rank_exceptions.hpp"
#include "tools/study/cluster_layers.hpp"
#include "tools/study/known_joins.hpp"
#include "tools/study/measurement_doubts.hpp"
#include "tools/study/point_notes.hpp"
#include "tools/study/table_ranks.hpp"

namespace ddpsim {
namespace {

/// What falls away with the scenario's own cluster, and keys that this kind of network ignores.
std::vector<std::string> idle_settings(const Scenario& scenario,
                                       const std::vector<Setting>& settings, Yaml file) {
  std::vector<std::string> notes = left_out_by(settings, file);
  if (const auto size = size_left_out_by(settings, file); size && !says_size(settings)) {
    const Cluster& cluster = scenario.cluster;
    const int now = size->key == "nodes" ? cluster.nodes : cluster.ranks();
    if (size->value != std::to_string(now))
      notes.push_back(fmt::format(
          "cluster.{0} of the scenario, {1}, is left out, as the cluster that takes the place of "
          "its own has {2}: --{0} {1} keeps it",
          size->key, size->value, now));
  }
  apply_settings(file, settings);
  const int passes = scenario.training.micro_batches;
  if (passes > 1 && !scenario.measured && (scenario.times.forward || scenario.times.backward))
    notes.push_back(
        fmt::format("workload.times is of one micro-batch, and a step has {} of them", passes));
  const auto workload = YamlMap(file).find("workload");
  if (!workload || !workload->is_map()) return notes;
  const YamlMap keys(*workload);
  const bool tokens = scenario.sequence > 0;
  if (!tokens && keys.has("sequence"))
    notes.push_back(fmt::format("workload.sequence has no effect: {} is not fed tokens",
                                scenario.workload.name));
  if (tokens && keys.has("image"))
    notes.push_back(
        fmt::format("workload.image has no effect: {} is fed tokens", scenario.workload.name));
  if (tokens && keys.has("channels_last"))
    notes.push_back(fmt::format("workload.channels_last has no effect: {} is fed tokens",
                                scenario.workload.name));
  const auto is_one_of = [&](const char* key, std::initializer_list<const char*> words) {
    const auto given = keys.find(key);
    return given && std::ranges::any_of(words, [&](auto word) { return given->is_word(word); });
  };
  if (is_one_of("dtype", {"bf16", "fp16"}) && is_one_of("compute", {"fp32", "tf32"}))
    notes.push_back(fmt::format(
        "workload.compute: {0}: PyTorch multiplies tensors of {1} in {1}, and this step is priced "
        "as if it did so in {0}; leave compute out",
        keys.at("compute").scalar(), keys.at("dtype").scalar()));
  return notes;
}

/// What a device says of NVLink, whoever wrote it.
struct SaidOfNvlink {
  bool lacks = false, bridge = false;
};

SaidOfNvlink said_of_nvlink(const Scenario& scenario, const std::vector<Setting>& settings) {
  const std::string& name = scenario.cluster.device.name;
  try {
    if (const auto layers = cluster_layers(scenario, settings))
      if (const auto device = device_in(*layers))
        return {lacks_nvlink(*device), has_nvlink_bridge(*device)};
  } catch (const InputError&) {  // a profile's settings may need what only its reader adds
  }
  return {lacks_nvlink(name), has_nvlink_bridge(name)};
}

/// Links that no such device has, and more devices in one node than any link of the kind joins.
void add_unheard_of(std::vector<std::string>& notes, const Scenario& scenario,
                    const std::vector<Setting>& settings) {
  const CalibratedCluster& cluster = scenario.cluster;
  const Link& link = cluster.intra_node;
  const int ranks = cluster.ranks_per_node.largest();
  const Device& device = cluster.device;
  const bool nvlink = link.kind == LinkKind::nvlink,
             pcie_of_gpus = link.kind == LinkKind::pcie && device.compute_capability > 0;
  if (ranks == 1) return;
  if (!nvlink && link.joins > 0 && ranks > link.joins)
    notes.push_back(fmt::format(
        "{} joins {} devices, and a node has {} ranks; --link NAME (cluster.intra_node) takes "
        "another link",
        shown_name(link.name, "link"), link.joins, ranks));
  if (!nvlink && !pcie_of_gpus) return;
  const SaidOfNvlink said = nvlink ? said_of_nvlink(scenario, settings) : SaidOfNvlink{};
  if (nvlink && (device.compute_capability == 0 || said.lacks)) {
    notes.push_back(
        fmt::format("{} has no NVLink: such devices are never joined by {}; `ddpsim list "
                    "links` has other links",
                    shown_name(device.name, "device"), shown_name(link.name, "link")));
    return;
  }
  if (link.all_reduce.empty() && !is_known_to_join(link, device)) {
    notes.push_back(fmt::format(
        "no {} is known to be joined by {}{}; `ddpsim list links` has other links, and "
        "--link NAME (cluster.intra_node) takes one",
        shown_name(device.name, "device"), shown_name(link.name, "link"),
        pcie_of_gpus ? fmt::format(" at {}, for its PCIe carries {}", to_string(link.bandwidth),
                                   to_string(Bandwidth{pcie_line_rate(device.compute_capability)}))
                     : ""));
    return;
  }
  if (!nvlink) return;
  if (said.bridge && (ranks > 2 || link.nvswitch)) {
    notes.push_back(fmt::format(
        "NVLink between {}s is a bridge that joins two, without a switch, and a node has {} ranks "
        "by {}: others reach each other by PCIe; --link NAME (cluster.intra_node) takes another "
        "link",
        shown_name(device.name, "device"), ranks, shown_name(link.name, "link")));
    return;
  }
  if (link.joins > 0 && ranks > link.joins) {
    notes.push_back(
        fmt::format("{} joins {} cards, and a node has {} ranks: others reach each other by PCIe, "
                    "which takes longer; --link NAME (cluster.intra_node) takes another link",
                    shown_name(link.name, "link"), link.joins, ranks));
    return;
  }
  const int limit = largest_nvlink_domain(device.compute_capability);
  if (ranks > limit)
    notes.push_back(fmt::format(
        "{} {} in one node by {} are more than any NVLink domain that is sold joins ({}): write "
        "nodes and inter_node",
        ranks, device.name, link.name, limit));
}

/// Measured operations of another device, whose times are taken as they are.
void add_foreign_operations(std::vector<std::string>& notes, const Scenario& scenario,
                            const std::vector<Setting>& settings) {
  if (!scenario.cluster.device.operations || has_measured_kernels(scenario.workload)) return;
  const std::string& name = scenario.cluster.device.name;
  try {
    const auto layers = cluster_layers(scenario, settings);
    const auto device = layers ? device_in(*layers) : std::nullopt;
    const auto found = device ? operations_of_another(*device) : std::nullopt;
    if (!found) return;
    notes.push_back(fmt::format(
        "cluster.device.operations: {} was measured on {}, and its times are taken as those of {}; "
        "operations: {}",
        printable(found->table), printable(found->device), shown_name(name, "device"),
        found->scaled_from.empty()
            ? "{scaled_from: FILE} scales them, FILE being a device with these operations"
            : "{scaled_from: " + found->scaled_from + "} scales them"));
  } catch (const InputError&) {  // a profile's settings may need what only its reader adds
  }
}

/// A GPU whose memory is slower than that of any GPU since 2010: a unit that was mistaken.
void add_slow_memory(std::vector<std::string>& notes, const Device& device) {
  constexpr double slowest = 25e9;
  if (device.compute_capability == 0 || device.memory_bandwidth.bytes_per_second >= slowest) return;
  notes.push_back(
      fmt::format("cluster.device.memory_bandwidth: {} is less than any GPU's: is TB/s meant?",
                  to_string(device.memory_bandwidth)));
}

/// A GPU whose kernels are said to run on the host thread, which no GPU's do.
void add_synchronous_gpu(std::vector<std::string>& notes, const CalibratedCluster& cluster) {
  const Device& device = cluster.device;
  if (!device.synchronous || !(device.compute_capability > 0 || is_known_gpu(device.name))) return;
  notes.push_back(fmt::format(
      "{} is a GPU, and `launch: sync` (or `synchronous: true` of the device) prices it as a CPU, "
      "whose kernels run on the host thread: without the {} of a launch, and without the "
      "multiprocessors that collectives take from kernels; this is not CUDA_LAUNCH_BLOCKING=1, "
      "which is not simulated: leave it out",
      shown_name(device.name, "device"),
      to_string(cluster.calibration ? cluster.calibration->launch.kernel : default_launch.kernel)));
}

/// Links in the place of others: GPUs are not joined by networks, nor nodes by NVLink or PCIe.
void add_misplaced_links(std::vector<std::string>& notes, const CalibratedCluster& cluster) {
  const auto is_network = [](const Link& link) {
    return link.kind == LinkKind::ethernet || link.kind == LinkKind::infiniband;
  };
  const Link &inside = cluster.intra_node, &between = cluster.inter_node;
  if (cluster.nodes > 1 && between.all_reduce.empty() &&
      (between.kind == LinkKind::nvlink || between.kind == LinkKind::pcie))
    notes.push_back(fmt::format(
        "inter_node: {} joins the GPUs of a node, and no nodes; `ddpsim list links` has networks",
        name_of_link(between)));
  if (cluster.ranks_per_node.largest() > 1 && cluster.device.compute_capability > 0 &&
      inside.all_reduce.empty() && is_network(inside))
    notes.push_back(fmt::format(
        "intra_node: {} joins nodes, and is no link between the GPUs of a node; `ddpsim list "
        "links` has NVLink and PCIe",
        name_of_link(inside)));
}

/// Do faster networks leave all-reduces of 1 MiB and more, up to `most`, as long as they are? (They
/// may let another algorithm be the quickest.)
bool network_is_idle(const CalibratedCluster& cluster, Bytes most) {
  const CollectiveLaw law(cluster);
  constexpr double felt = 0.002;
  for (const double factor : {2.0, 16.0}) {
    CalibratedCluster faster = cluster;
    faster.inter_node.bandwidth.bytes_per_second *= factor;
    faster.inter_node.nccl_bandwidth.bytes_per_second *= factor;
    for (RankException& exception : faster.exceptions)
      if (exception.nic) exception.nic->bytes_per_second *= factor;
    const CollectiveLaw faster_law(faster);
    const auto shorter = [&](Bytes size) {
      return in_seconds(faster_law.all_reduce(size).time()) <
             (1 - felt) * in_seconds(law.all_reduce(size).time());
    };
    for (Bytes size = 1 * MiB; size < most; size = 2 * size)
      if (shorter(size)) return false;
    if (shorter(most)) return false;
  }
  return true;
}

/// Is a NIC's line near what its slot carries, or beyond? Far below it the network is never idle.
bool is_near_slot(const CalibratedCluster& cluster) {
  constexpr double near = 0.8;
  const double slot = slot_line_rate(cluster);
  return slot > 0 && slowest_nic(cluster).bytes_per_second > near * slot;
}

/// What bounds all-reduces between nodes, if the network does not.
void add_idle_network(std::vector<std::string>& notes, const Scenario& scenario) {
  const CalibratedCluster& cluster = scenario.cluster;
  if (cluster.nodes == 1) return;
  const CollectiveBound bound =
      CollectiveLaw(cluster).all_reduce(scenario.workload.gradient_size()).choice.bound;
  std::string port;
  if (bound == CollectiveBound::pcie)
    port = "a GPU's PCIe, its way to the NICs,";
  else if (bound == CollectiveBound::host_memory ||
           (bound == CollectiveBound::port && through_host(cluster) &&
            cluster.collectives != CollectiveModel::alpha_beta))
    port = "the host's memory, through which GPUs of a node reach each other,";
  else if (bound == CollectiveBound::port && cluster.intra_node.kind == LinkKind::pcie)
    port = fmt::format("a GPU's PCIe ({}), which it shares with its node,",
                       name_of_link(cluster.intra_node));
  else if (bound == CollectiveBound::port)
    port = fmt::format("a {}'s port to its node ({})",
                       cluster.device.compute_capability > 0 ? "GPU" : "rank",
                       name_of_link(cluster.intra_node));
  else if (bound == CollectiveBound::nic && is_near_slot(cluster))
    port = fmt::format("a card's PCIe slot ({})", to_string(Bandwidth{slot_line_rate(cluster)}));
  else if (bound == CollectiveBound::memory)
    port = "a host's memory, which copies and adds up,";
  else
    return;
  if (!network_is_idle(cluster, scenario.workload.gradient_size())) return;
  const int nics = nics_per_node(cluster);
  notes.push_back(fmt::format(
      "{} bounds all-reduces of 1 MiB and more, not the {} of a node ({}): a network of more "
      "bandwidth "
      "would not make them shorter",
      port, nics == 1 ? "NIC" : fmt::format("{} NICs", nics), name_of_link(cluster.inter_node)));
}

/// What is taken of nodes that differ, where a law prices all-reduces between them.
void add_unequal_nodes(std::vector<std::string>& notes, const CalibratedCluster& cluster) {
  if (cluster.ranks_per_node.equal() || CollectiveLaw(cluster).name() == std::string("table"))
    return;
  notes.push_back(
      fmt::format("nodes of {} ranks: the narrowest is taken to set the pace between nodes, which "
                  "no known measurement confirms",
                  to_string(cluster.ranks_per_node)));
}

/// All-reduces far above what the link's table covers.
void add_extrapolation(std::vector<std::string>& notes, const Scenario& scenario) {
  const std::optional<SizeSpan> covered = covered_sizes(scenario.cluster);
  if (!covered) return;
  const Training& training = scenario.training;
  const auto compares = [&](Strategy strategy) {
    return std::count(scenario.compare.begin(), scenario.compare.end(), strategy) > 0;
  };
  Bytes largest;
  for (const Parameter& parameter : scenario.workload.parameters)
    largest = std::max(largest, parameter.size());
  const Bytes all = scenario.workload.gradient_size();
  if (compares(Strategy::bucketed)) largest = std::max(largest, std::min(training.bucket_cap, all));
  if (compares(Strategy::flat)) largest = all;
  constexpr int near = 2;  // the line through the last points holds so far
  if (largest <= near * covered->most) return;
  notes.push_back(fmt::format(
      "the link's table covers all-reduces of {} to {}, and this scenario has some of {}: their "
      "times are an extrapolation",
      to_string(covered->least), to_string(covered->most), to_string(largest)));
}

/// A measured table that stands for the link inside a node and is of more ranks than one has, or of
/// other nodes than there are.
void add_misplaced_table(std::vector<std::string>& notes, const CalibratedCluster& cluster) {
  const Link &inside = cluster.intra_node, &between = cluster.inter_node;
  const int ranks = cluster.ranks_per_node.largest();
  if (cluster.nodes > 1 && ranks > 1 && !inside.all_reduce.empty() && inside.table_ranks > ranks)
    notes.push_back(fmt::format(
        "intra_node ({}) has a table of {} ranks, more than the {} of a node, and prices nothing "
        "between nodes: if it was measured over several nodes, give it to the network, --set "
        "cluster.inter_node=FILE",
        name_of_link(inside), inside.table_ranks, ranks));
  else if (ranks > 1 && !inside.all_reduce.empty() && inside.table_nodes > 1)
    notes.push_back(
        fmt::format("intra_node ({}) has a table measured over {} nodes, and joins the ranks of "
                    "one: give it to the network, --set cluster.inter_node=FILE",
                    name_of_link(inside), inside.table_nodes));
  if (cluster.nodes == 1 || between.table_nodes == 0 || between.table_nodes == cluster.nodes ||
      CollectiveLaw(cluster).name() != std::string("table"))
    return;
  notes.push_back(
      between.table_nodes == 1
          ? fmt::format(
                "inter_node ({}) has a table of all-reduces on one node, which says nothing "
                "of all-reduces between {} nodes and prices them all the same: name a "
                "network, or a table measured over several nodes (--link FILE)",
                name_of_link(between), cluster.nodes)
          : fmt::format("all-reduces were measured on {} nodes, and the cluster has {}",
                        between.table_nodes, cluster.nodes));
}

/// A link inside a node that does not say its kind: which way its bytes go decides how much kernels
/// beside them lose. Told of GPUs that do not copy to each other over PCIe, and of a measured table
/// that takes the place of the scenario's link: it keeps the kind of a ready cluster's link, and of
/// the scenario's own link it keeps nothing.
void add_unsaid_kind(std::vector<std::string>& notes, const CalibratedCluster& cluster,
                     const std::vector<Setting>& settings) {
  const Device& device = cluster.device;
  const Link& link = cluster.intra_node;
  const bool measured = cluster.calibration && !cluster.calibration->interference.empty();
  const bool keeps_kind = !link.kind_from.empty();
  if (cluster.ranks_per_node.largest() == 1 || (link.kind != LinkKind::plain && !keeps_kind) ||
      measured || device.compute_capability == 0 || device.synchronous || cluster.interference)
    return;
  if (keeps_kind) {
    if (!touches(settings, "cluster.intra_node")) return;
    const bool nvlink = link.kind == LinkKind::nvlink;
    notes.push_back(fmt::format(
        "intra_node ({}) says no kind: it is taken as measured over {}, in whose place it stands, "
        "and kernels beside all-reduces are slowed as over {}{}; --set cluster.intra_node.kind={} "
        "says that it is another",
        name_of_link(link), link.kind_from, nvlink ? "NVLink" : "PCIe",
        !nvlink         ? ""
        : link.nvswitch ? " with a switch"
                        : " without a switch",
        nvlink ? "pcie" : "nvlink"));
  } else if (!device.peer_to_peer)
    notes.push_back(fmt::format(
        "intra_node ({}) says no kind: kernels beside all-reduces are slowed as over NVLink, but "
        "over PCIe {} reach each other through the host's memory, which slows them otherwise; "
        "--set cluster.intra_node.kind=pcie says so",
        name_of_link(link), device.name));
  else if (!link.nvswitch && !link.all_reduce.empty() &&
           (cluster.nodes > 1 || touches(settings, "cluster.intra_node")))
    notes.push_back(fmt::format(
        "intra_node ({}) says no kind: kernels beside all-reduces are slowed as over NVLink "
        "without a switch{}; --set cluster.intra_node.nvswitch=true says that there is one, {}"
        "kind=pcie that it is PCIe",
        name_of_link(link),
        cluster.nodes > 1 ? ", and no switch adds up what goes between nodes" : "",
        cluster.nodes > 1 ? "beside kind=nvlink, " : ""));
}

/// A network's table that was measured on nodes of other sizes.
void add_table_of_other_nodes(std::vector<std::string>& notes, const CalibratedCluster& cluster) {
  const Link& network = cluster.inter_node;
  const RanksPerNode& nodes = cluster.ranks_per_node;
  const int measured = smallest_measured_node(network);
  const bool equal = network.table_smallest_node == 0;
  if (cluster.nodes == 1 || measured == 0 ||
      (nodes.smallest() == measured && nodes.equal() == equal) ||
      CollectiveLaw(cluster).name() != std::string("table"))
    return;
  const bool narrower = nodes.smallest() < measured;
  notes.push_back(fmt::format(
      "all-reduces were measured on nodes of {} rank{}{}, and the cluster has nodes of {}: {}",
      measured, measured == 1 ? "" : "s", equal ? " each" : " and more", to_string(nodes),
      narrower ? fmt::format("they are taken as they are, and where each rank has a NIC of its own "
                             "they take up to {:.3g} times as long; measure on such nodes",
                             static_cast<double>(measured) / nodes.smallest())
               : "they are taken as they are; measure on such nodes"));
}

/// A table of one node between whose likes there is a network without one. (Post-local SGD averages
/// within nodes, by the table.)
void add_table_of_one_node(std::vector<std::string>& notes, const Scenario& scenario) {
  const CalibratedCluster& cluster = scenario.cluster;
  const Link& inside = cluster.intra_node;
  const int ranks = cluster.ranks_per_node.largest();
  if (cluster.nodes == 1 || ranks == 1 || inside.all_reduce.empty()) return;
  if (inside.table_nodes > 1 || inside.table_ranks > ranks) return;  // told otherwise
  const std::string law = CollectiveLaw(cluster).name();
  if (law == "table" || scenario.training.comm_hook.kind == CommHookKind::post_local_sgd) return;
  notes.push_back(fmt::format(
      "intra_node ({}) has a table of all-reduces on one node, which says nothing of all-reduces "
      "between {} nodes: {}; a table measured over several nodes, as `ddpsim import nccl-tests` "
      "makes of such a run, prices them (--link FILE)",
      name_of_link(inside), cluster.nodes,
      law == "alpha-beta" ? "they are priced by the network alone"
                          : "of this link its latency and bandwidth alone are used"));
}

/// A table of so many ranks that serves others, and a link that keeps a calibration's all-reduces
/// from being used.
void add_link_origin(std::vector<std::string>& notes, const CalibratedCluster& cluster,
                     const std::vector<Setting>& settings) {
  if (cluster.ranks() == 1) return;
  // A calibration of several ranks has all-reduces, which the reader drops for a link.
  if (cluster.calibration && cluster.calibration->complete && cluster.calibration->ranks > 1 &&
      cluster.calibration->all_reduce.empty()) {
    const std::string key = cluster.nodes > 1 ? "inter_node" : "intra_node";
    notes.push_back(fmt::format(
        "all-reduces are those of the link that the cluster names ({}), not those that the "
        "calibration measured: leave {} out to have these",
        name_of_link(deciding_link(cluster)),
        touches(settings, "cluster." + key) ? fmt::format("cluster.{} (--link)", key) : key));
  }
  if (std::string scaled = scaled_table_note(ranks_of_table(cluster), {cluster.ranks()});
      !scaled.empty())
    notes.push_back(std::move(scaled));
}

/// A network of a kind whose bandwidth, of one NIC, is what its table reached over all NICs
/// of a node: that of the ring, as `import nccl-tests` writes it, to which a kind was added.
void add_rate_of_ring(std::vector<std::string>& notes, const CalibratedCluster& cluster) {
  const Link& network = cluster.inter_node;
  const int nics = nics_of_node(cluster, cluster.ranks_per_node.largest());
  if (cluster.nodes == 1 || network.kind == LinkKind::plain || network.all_reduce.empty() ||
      nics == 1)
    return;
  const Bandwidth reached = reached_on_bus(network.all_reduce, cluster.ranks());
  if (!is_about(network.bandwidth, reached)) return;  // another rate than a ring fitted to it
  notes.push_back(fmt::format(
      "inter_node ({}) says {} of each of a node's {} NICs, and its table reaches {} over all of "
      "them: if that bandwidth is the ring's, as `ddpsim import nccl-tests` writes it for a link "
      "of no kind, write a NIC's line rate (--set cluster.inter_node.bandwidth=...)",
      name_of_link(network), to_string(network.bandwidth), nics, to_string(reached)));
}

/// Measured all-reduces and what `cluster.collectives` says beside them: one of them is not used.
void add_unused_collectives(std::vector<std::string>& notes, const CalibratedCluster& cluster) {
  const Link& link = deciding_link(cluster);
  const bool calibrated = cluster.calibration && !cluster.calibration->all_reduce.empty();
  if (cluster.ranks() == 1 || (link.all_reduce.empty() && !calibrated)) return;
  const std::string measured = calibrated ? "the calibration" : name_of_link(link);
  const ForcedChoice& forced = cluster.forced;
  const std::string law = CollectiveLaw(cluster).name();
  if (law == "table" && (forced.algorithm || forced.protocol || forced.channels))
    notes.push_back(fmt::format(
        "algorithm, protocol and channels of cluster.collectives are not used: all-reduces are "
        "those that {} measured, which have them in them; law: nccl leaves the measurement out",
        measured));
  if (law == "table") return;
  // `import nccl-tests` writes no kind, and fits the bandwidth to a ring of all ranks.
  const bool fitted =
      law == "nccl" && !calibrated && link.kind == LinkKind::plain && cluster.nodes > 1;
  notes.push_back(fmt::format(
      "the measured all-reduces of {} are left out, as cluster.collectives says law: {}{}; law: "
      "auto takes them",
      measured, law,
      fitted ? fmt::format(", and its {} are taken for each NIC, though a log of nccl-tests tells "
                           "what the whole ring carries",
                           to_string(link.bandwidth))
             : ""));
}

/// Does the cluster name a GPU, and a calibration's driver another?
bool is_of_another_gpu(const Calibration& calibration, const Device& device) {
  if (calibration.tasks.empty() || calibration.cpu.empty() || device.name == "inline") return false;
  if (device.compute_capability == 0 || calibration.synchronous) return false;
  return !is_called(device.name, calibration.cpu);
}

/// A calibration of other devices than the cluster has, or one that was interrupted.
void add_calibration_doubts(std::vector<std::string>& notes, const CalibratedCluster& cluster) {
  if (!cluster.calibration) return;
  const Calibration& found = *cluster.calibration;
  if (found.synchronous && cluster.device.compute_capability > 0)
    notes.push_back(fmt::format(
        "the calibration was measured on CPUs ({}) and the cluster has {}: kernels that it holds "
        "take a CPU's time; take cluster.calibration out, or name device: generic-cpu",
        found.cpu, cluster.device.name));
  else if (is_of_another_gpu(found, cluster.device))
    notes.push_back(
        fmt::format("the calibration was measured on {} and the cluster has {}: kernels take the "
                    "time that they take on {}; take cluster.calibration out, or cluster.device",
                    found.cpu, cluster.device.name, found.cpu));
  if (!found.complete)
    notes.emplace_back(
        "the calibration was interrupted (complete: false): what it lacks comes from the laws; "
        "calibrate again for the rest");
}

/// Micro-batches that each communicate.
void add_repeated_communication(std::vector<std::string>& notes, const Scenario& scenario) {
  const Training& training = scenario.training;
  if (training.micro_batches == 1 || training.no_sync || scenario.cluster.ranks() == 1) return;
  if (std::ranges::any_of(scenario.compare, reduces_every_micro_batch)) return;
  const bool keeps_parts = std::ranges::any_of(scenario.compare, shards);
  notes.push_back(fmt::format(
      "every one of the {} micro-batches sends its gradients: training.no_sync: true sends those "
      "of the last alone, as under {}",
      training.micro_batches,
      keeps_parts ? "no_sync() of DistributedDataParallel and FullyShardedDataParallel, and "
                    "fully_shard's set_requires_gradient_sync(False); a rank that shards keeps "
                    "whole gradients meanwhile, which takes memory"
                  : "DistributedDataParallel.no_sync()"));
}

/// A cap that makes no bucket, as the scenario says by what else they are made.
void add_idle_cap(std::vector<std::string>& notes, const Training& training) {
  const std::string_view instead = training.parameter_groups > 0   ? "parameter_groups"
                                   : !training.buckets.empty()     ? "buckets"
                                   : !training.bucket_caps.empty() ? "bucket_caps"
                                                                   : "";
  if (instead.empty() || training.bucket_cap == default_bucket_cap) return;
  notes.push_back(fmt::format("bucket_cap: {} makes no bucket: {} says what the buckets are",
                              to_string(training.bucket_cap), instead));
}

/// Shares that links carry, under laws that take bandwidths as they are written.
void add_idle_carries(std::vector<std::string>& notes, const CalibratedCluster& cluster) {
  const std::string law = CollectiveLaw(cluster).name();
  if (cluster.ranks() == 1 || (law != "alpha-beta" && law != "gloo")) return;
  const auto add = [&](const char* key, const Link& link, bool used) {
    if (!used || link.carries == 0 || link.carries == 1) return;
    notes.push_back(
        fmt::format("{}.carries has no effect under the {} law: it knows no such share; write as "
                    "{}.bandwidth what large messages reach",
                    key, law, key));
  };
  // Where this law was chosen for want of a network's kind, the host's memory bounds it as well.
  const bool bounds = through_host(cluster) && cluster.collectives == CollectiveModel::automatic;
  add("intra_node", cluster.intra_node, cluster.ranks_per_node.largest() > 1 && !bounds);
  add("inter_node", cluster.inter_node, cluster.nodes > 1);
}

/// NICs beside the one that Gloo's law takes.
void add_nics_beside_gloo(std::vector<std::string>& notes, const CalibratedCluster& cluster) {
  if (cluster.nodes == 1 || CollectiveLaw(cluster).name() != std::string("gloo")) return;
  if (const int nics = nics_per_node(cluster); nics > 1)
    notes.push_back(fmt::format(
        "{} NICs a node ({}): Gloo's law takes one of them, which the ranks of a node share; the "
        "others make nothing shorter",
        nics, name_of_link(cluster.inter_node)));
}

/// NICs of exceptions that change nothing.
void add_idle_nics(std::vector<std::string>& notes, const CalibratedCluster& cluster) {
  for (const RankException& exception : cluster.exceptions) {
    if (!exception.nic) continue;
    if (const std::string why = why_nic_idles(cluster, *exception.nic); !why.empty())
      notes.push_back(
          fmt::format("cluster.exceptions: nic of {} has no effect: {}", name_of(exception), why));
  }
}

}  // namespace

std::vector<std::string> cluster_notes(const Scenario& scenario,
                                       const std::vector<Setting>& settings) {
  std::vector<std::string> notes;
  if (unreadable(scenario.file).empty())
    if (Yaml file = Yaml::load(scenario.file); YamlMap(file).has("workload"))  // no bare model
      notes = idle_settings(scenario, settings, std::move(file));
  if (has_measured_kernels(scenario.workload) &&
      (touches(settings, "cluster.device") || is_set(settings, "cluster") ||
       is_set(settings, "cluster.system")))
    notes.push_back(
        fmt::format("forward and backward of {} were measured and stay as they are: the "
                    "device changes only copies and collectives",
                    scenario.workload.name));
  if (std::string partial = partial_text(scenario); !partial.empty()) {
    partial.pop_back();  // the end of the line
    notes.push_back(std::move(partial));
  }
  for (const std::string& doubt : measurement_doubts(scenario))
    notes.push_back(
        fmt::format("{} (so how far such predictions usually are off is not quoted)", doubt));
  for (std::string& idle : idle_links_notes(scenario, settings)) notes.push_back(std::move(idle));
  if (std::string kept = kept_links_note(scenario, settings); !kept.empty())
    notes.push_back(std::move(kept));
  else if (std::string full = full_nodes_note(scenario, settings); !full.empty())
    notes.push_back(std::move(full));
  else
    add_unheard_of(notes, scenario, settings);
  if (std::string split = split_rack_note(scenario, settings); !split.empty())
    notes.push_back(std::move(split));
  if (std::string price = kept_price_note(scenario, settings); !price.empty())
    notes.push_back(std::move(price));
  if (std::string nics = kept_nics_note(scenario, settings); !nics.empty())
    notes.push_back(std::move(nics));
  if (std::string used = used_nodes_note(scenario, settings); !used.empty())
    notes.push_back(std::move(used));
  add_foreign_operations(notes, scenario, settings);
  add_slow_memory(notes, scenario.cluster.device);
  add_synchronous_gpu(notes, scenario.cluster);
  add_misplaced_links(notes, scenario.cluster);
  add_unequal_nodes(notes, scenario.cluster);
  add_idle_network(notes, scenario);
  add_idle_carries(notes, scenario.cluster);
  add_nics_beside_gloo(notes, scenario.cluster);
  add_idle_nics(notes, scenario.cluster);
  add_extrapolation(notes, scenario);
  add_calibration_doubts(notes, scenario.cluster);
  add_link_origin(notes, scenario.cluster, settings);
  add_unused_collectives(notes, scenario.cluster);
  add_rate_of_ring(notes, scenario.cluster);
  add_misplaced_table(notes, scenario.cluster);
  add_table_of_other_nodes(notes, scenario.cluster);
  add_unsaid_kind(notes, scenario.cluster, settings);
  add_table_of_one_node(notes, scenario);
  add_idle_cap(notes, scenario.training);
  add_repeated_communication(notes, scenario);
  if (scenario.described && scenario.described->collectives > 0)
    notes.push_back(fmt::format(
        "{} sends {} collectives of its own in a step, {} bytes of each rank in all, that are not "
        "priced (their kind has no law, or the file does not tell their place: describe it anew): "
        "a step takes longer by them",
        scenario.workload.name, scenario.described->collectives,
        scenario.described->collective_bytes.count));
  const auto of_cpu = [&] {
    return std::ranges::find(scenario.described->notes, "described as PyTorch runs on a CPU") !=
           scenario.described->notes.end();
  };
  if (scenario.described && scenario.cluster.device.compute_capability > 0 && of_cpu())
    notes.push_back(fmt::format(
        "{} was described as PyTorch runs on a CPU, whose operations are not those of {}: describe "
        "it for a GPU (ddpsim describe without --device cpu)",
        scenario.workload.name, scenario.cluster.device.name));
  if (scenario.training.no_sync && scenario.training.micro_batches == 1)
    notes.emplace_back(
        "training.no_sync: there is one micro-batch, which always communicates; micro_batches says "
        "how many there are between updates");
  return notes;
}

}  // namespace ddpsim
