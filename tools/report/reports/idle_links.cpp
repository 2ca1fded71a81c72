#include "tools/report/reports/idle_links.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "model/cost/collective.hpp"
#include "model/cost/interference.hpp"
#include "scenarios/reader/cluster/cluster_reader.hpp"
#include "scenarios/reader/cluster/cluster_shape.hpp"
#include "scenarios/reader/format/yaml.hpp"
#include "scenarios/reader/scenario/scenario_settings.hpp"
#include "scenarios/reader/text/input_error.hpp"

// A measured table says how long an all-reduce takes. What kernels lose beside it follows from the
// links all the same: how many channels NCCL opens over them, each of which holds a multiprocessor,
// and how much of its bandwidth an all-reduce loses over links of that kind. So a setting of a link
// beside a table may change a step by a per cent or two, and over PCIe, where NCCL opens fewer
// channels than over NVLink, the step is the shorter one. Whether it does is found by pricing the
// cluster without the setting.

namespace ddpsim {
namespace {

using Settings = std::vector<Setting>;

/// The cluster as it is without the settings of `key` and below it. Throws InputError where the
/// rest says too little.
CalibratedCluster cluster_without(const Scenario& scenario, Settings settings,
                                  std::string_view key) {
  std::erase_if(settings, [&](const Setting& setting) { return touches(setting, key); });
  Yaml root =
      is_set(settings, "cluster") ? Yaml::of_nothing(scenario.file) : Yaml::load(scenario.file);
  apply_settings(root, settings);
  std::optional<Price> price;
  return read_cluster(YamlMap(root).at("cluster"), price);
}

/// Do all-reduces up to `most` bytes slow kernels as much on both, and these them?
bool slow_alike(const CalibratedCluster& one, const CalibratedCluster& other, Bytes most) {
  const CollectiveLaw law(one), other_law(other);
  const InterferenceLaw beside(one), other_beside(other);
  const auto alike = [&](Bytes size) {
    const Interference a = beside.beside(law.all_reduce(size), size),
                       b = other_beside.beside(other_law.all_reduce(size), size);
    return a.compute_bound == b.compute_bound && a.memory_bound == b.memory_bound &&
           a.communication == b.communication && a.per_launch == b.per_launch;
  };
  for (Bytes size = 1 * KiB; size < most; size = 2 * size)
    if (!alike(size)) return false;
  return alike(most);
}

/// Does the setting of `key`, which changes no time of an all-reduce, change what kernels lose
/// beside one?
bool is_felt(const Scenario& scenario, const Settings& settings, std::string_view key) {
  const CalibratedCluster& cluster = scenario.cluster;
  try {
    return !slow_alike(cluster, cluster_without(scenario, settings, key),
                       scenario.workload.gradient_size());
  } catch (const InputError&) {  // there is no link without the setting
  } catch (const std::invalid_argument&) {
  }
  return cluster.device.compute_capability > 0 && !cluster.interference;
}

std::string idle_note(const Scenario& scenario, const Settings& settings, const std::string& path,
                      std::string_view whose) {
  const std::string key = path.substr(path.find('.') + 1);  // without "cluster."
  if (!is_felt(scenario, settings, path)) {
    if (key == "intra_node" && scenario.cluster.nodes > 1)
      return fmt::format(
          "{} has no effect on these steps: all-reduces are taken from {} measured table; it "
          "prices "
          "the step of one node alone",
          key, whose);
    return fmt::format("{} has no effect: all-reduces are taken from {} measured table", key,
                       whose);
  }
  return fmt::format(
      "{} changes no all-reduce, as these are taken from {} measured table, only how much "
      "all-reduces and kernels slow each other: NCCL opens more channels over some links than over "
      "others, and each takes a multiprocessor from kernels (cluster.interference says otherwise)",
      key, whose);
}

}  // namespace

std::vector<std::string> idle_links_notes(const Scenario& scenario, const Settings& settings) {
  const CalibratedCluster& cluster = scenario.cluster;
  std::vector<std::string> notes;
  if (cluster.nodes == 1 && touches(settings, "cluster.inter_node"))
    notes.emplace_back(no_network_note);
  if (cluster.ranks_per_node.largest() == 1 && touches(settings, "cluster.intra_node"))
    notes.emplace_back("intra_node has no effect: a node has one rank");
  if (CollectiveLaw(cluster).name() != std::string("table")) return notes;
  const std::string link = cluster.nodes > 1 ? "cluster.inter_node" : "cluster.intra_node";
  for (const char* figure : {"latency", "bandwidth", "nccl_bandwidth", "carries", "nics", "kind"})
    if (const std::string path = fmt::format("{}.{}", link, figure); touches(settings, path))
      notes.push_back(idle_note(scenario, settings, path, "the link's"));
  // Post-local SGD averages within nodes, by their own link.
  const bool within = scenario.training.comm_hook.kind == CommHookKind::post_local_sgd;
  if (cluster.nodes > 1 && cluster.ranks_per_node.largest() > 1 && !within &&
      touches(settings, "cluster.intra_node"))
    notes.push_back(idle_note(scenario, settings, "cluster.intra_node", "inter_node's"));
  return notes;
}

}  // namespace ddpsim
