#include "tools/report/cluster_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/cluster/deciding_link.hpp"
#include "model/cost/collective.hpp"
#include "model/cost/collective_ports.hpp"
#include "model/cost/cost_model.hpp"
#include "tools/report/cluster_fields.hpp"
#include "tools/report/described_report.hpp"

namespace ddpsim {
namespace {

using Setting = std::pair<std::string, std::string>;

/// Of one device; zero where nobody knows.
Bandwidth line_rate(const CalibratedCluster& cluster) {
  const Bandwidth port = deciding_link(cluster).bandwidth;
  if (cluster.nodes == 1) return cluster.ranks_per_node > 1 ? port : Bandwidth{};
  return {port.bytes_per_second * nics_per_node(cluster) / cluster.ranks_per_node};
}

std::string name_of_link(const Link& link) {
  if (link.name.empty()) return "links as they were measured";
  return link.name == "inline" ? "a link of its own" : link.name;
}

bool is_given(const std::vector<Setting>& settings, const std::string& key) {
  return std::any_of(settings.begin(), settings.end(),
                     [&](const Setting& setting) { return setting.first == key; });
}

/// Is a key, or one below it, among the settings?
bool touches(const std::vector<Setting>& settings, const std::string& key) {
  return std::any_of(settings.begin(), settings.end(), [&](const Setting& setting) {
    return setting.first == key || setting.first.rfind(key + ".", 0) == 0;
  });
}

/// Were the times of forward and backward measured?
bool is_measured(const Workload& workload) {
  const auto timed = [](const std::vector<Kernel>& kernels) {
    return std::any_of(kernels.begin(), kernels.end(),
                       [](const Kernel& kernel) { return kernel.time.has_value(); });
  };
  return std::any_of(workload.layers.begin(), workload.layers.end(), [&](const Layer& layer) {
    return timed(layer.forward) || timed(layer.backward);
  });
}

/// What a setting of a link does not do.
void add_idle_links(std::vector<std::string>& notes, const CalibratedCluster& cluster,
                    const std::vector<Setting>& settings) {
  if (cluster.nodes == 1 && touches(settings, "cluster.inter_node"))
    notes.emplace_back("inter_node has no effect: there is one node");
  if (cluster.ranks_per_node == 1 && touches(settings, "cluster.intra_node"))
    notes.emplace_back("intra_node has no effect: a node has one rank");
  const std::string key = cluster.nodes > 1 ? "inter_node" : "intra_node";
  if (CollectiveLaw(cluster).name() != std::string("table")) return;
  for (const char* figure : {"latency", "bandwidth", "nccl_bandwidth", "nics", "kind"})
    if (touches(settings, fmt::format("cluster.{}.{}", key, figure)))
      notes.push_back(
          fmt::format("{}.{} has no effect: all-reduces are taken from the link's measured table",
                      key, figure));
  if (cluster.nodes > 1 && cluster.ranks_per_node > 1 && touches(settings, "cluster.intra_node"))
    notes.emplace_back(
        "intra_node has no effect: all-reduces are taken from inter_node's measured table");
}

/// What bounds large all-reduces between nodes, if the network does not.
void add_idle_network(std::vector<std::string>& notes, const Scenario& scenario) {
  const CalibratedCluster& cluster = scenario.cluster;
  if (cluster.nodes == 1) return;
  const CollectiveBound bound =
      CollectiveLaw(cluster).all_reduce(scenario.workload.gradient_size()).choice.bound;
  std::string port;
  if (bound == CollectiveBound::pcie)
    port = "a GPU's PCIe, its way to the NICs,";
  else if (bound == CollectiveBound::port && cluster.intra_node.kind == LinkKind::pcie)
    port = fmt::format("a GPU's PCIe ({}), which it shares with its node,",
                       name_of_link(cluster.intra_node));
  else if (bound == CollectiveBound::port)
    port = fmt::format("a {}'s port to its node ({})",
                       cluster.device.compute_capability > 0 ? "GPU" : "rank",
                       name_of_link(cluster.intra_node));
  else if (bound == CollectiveBound::memory)
    port = "a host's memory, which copies and adds up,";
  else
    return;
  const int nics = nics_per_node(cluster);
  notes.push_back(fmt::format(
      "{} bounds large all-reduces, not the {} of a node ({}): a faster network would not make "
      "them shorter",
      port, nics == 1 ? "NIC" : fmt::format("{} NICs", nics), name_of_link(cluster.inter_node)));
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

}  // namespace

std::string cluster_text(const Scenario& scenario) {
  const CalibratedCluster& cluster = scenario.cluster;
  const Bandwidth rate = line_rate(cluster);
  const std::string per_device =
      rate.bytes_per_second > 0
          ? fmt::format("{} of line rate per {}", to_string(rate),
                        cluster.device.compute_capability > 0 ? "GPU" : "device")
          : "line rate not known";
  std::string inside;
  if (cluster.ranks_per_node > 1) inside = " by " + name_of_link(cluster.intra_node);
  if (cluster.ranks_per_node > 1 && through_host(cluster)) inside += " through the host's memory";
  std::string text =
      fmt::format("{} node{} x {} {}{}", cluster.nodes, cluster.nodes == 1 ? "" : "s",
                  cluster.ranks_per_node, cluster.device.name, inside);
  if (cluster.nodes > 1) {
    const int nics = nics_per_node(cluster);
    text += fmt::format("; {} NIC{} a node by {}", nics, nics == 1 ? "" : "s",
                        name_of_link(cluster.inter_node));
  }
  if (cluster.ranks() > 1)
    text += fmt::format(", {}; all-reduce law: {}", per_device, CollectiveLaw(cluster).name());
  if (const double slowest = slowest_rank(cluster, scenario.workload.step_spread); slowest > 1)
    text += fmt::format("; the slowest of {} ranks is {:.1f} % later", cluster.ranks(),
                        100 * (slowest - 1));
  return text;
}

Record cluster_record(const Scenario& scenario) {
  const CalibratedCluster& cluster = scenario.cluster;
  const bool inside = cluster.ranks_per_node > 1, between = cluster.nodes > 1;
  const double rate = line_rate(cluster).bytes_per_second;
  const auto link_or_nothing = [](bool there, const Link& link) {
    return there && !link.name.empty() ? FieldValue(link.name) : FieldValue();
  };
  Record record;
  record.add(fields::nodes, cluster.nodes)
      .add(fields::ranks_per_node, cluster.ranks_per_node)
      .add(fields::device_name, cluster.device.name)
      .add(fields::intra_node, link_or_nothing(inside, cluster.intra_node))
      .add(fields::inter_node, link_or_nothing(between, cluster.inter_node))
      .add(fields::nics_per_node, between ? FieldValue(nics_per_node(cluster)) : FieldValue())
      .add(fields::line_rate, rate > 0 ? FieldValue(rate) : FieldValue())
      .add(fields::law,
           cluster.ranks() > 1 ? FieldValue(CollectiveLaw(cluster).name()) : FieldValue())
      .add(fields::slowest_rank, slowest_rank(cluster, scenario.workload.step_spread));
  return record;
}

std::vector<std::string> cluster_notes(const Scenario& scenario,
                                       const std::vector<Setting>& settings) {
  std::vector<std::string> notes;
  if (is_measured(scenario.workload) &&
      (touches(settings, "cluster.device") || is_given(settings, "cluster") ||
       is_given(settings, "cluster.system")))
    notes.push_back(fmt::format(
        "forward and backward of {} were measured: the device changes only copies and collectives",
        scenario.workload.name));
  if (std::string partial = partial_text(scenario); !partial.empty()) {
    partial.pop_back();  // the end of the line
    notes.push_back(std::move(partial));
  }
  add_idle_links(notes, scenario.cluster, settings);
  add_idle_network(notes, scenario);
  add_idle_cap(notes, scenario.training);
  if (scenario.described && scenario.described->collectives > 0)
    notes.push_back(fmt::format(
        "{} sends {} collectives of its own in a step, {} bytes of each rank in all: they are not "
        "priced, and a step takes longer by them",
        scenario.workload.name, scenario.described->collectives,
        scenario.described->collective_bytes.count));
  if (scenario.training.no_sync && scenario.training.micro_batches == 1)
    notes.emplace_back(
        "training.no_sync: there is one micro-batch, which always communicates; micro_batches says "
        "how many there are between updates");
  return notes;
}

}  // namespace ddpsim
