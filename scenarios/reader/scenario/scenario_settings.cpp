#include "scenarios/reader/scenario/scenario_settings.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/catalogue/entry_keys.hpp"
#include "scenarios/reader/cluster/cluster_reader.hpp"
#include "scenarios/reader/cluster/cluster_shape.hpp"
#include "scenarios/reader/format/format.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/text/quantity_text.hpp"

namespace ddpsim {
namespace {

constexpr std::string_view inter_node = "cluster.inter_node";

auto depth(const std::string& path) {
  return std::count(path.begin(), path.end(), '.');
}

std::optional<Yaml> value_at(const Yaml& root, const std::vector<std::string>& path) {
  std::optional<Yaml> value(root);
  for (const std::string& step : path) {
    const auto next = value->is_map() ? YamlMap(*value).find(step) : std::nullopt;
    if (!next) return std::nullopt;
    value.emplace(*next);  // an assignment would write into the scenario's nodes
  }
  return value;
}

/// Does the entry that `name` names, or one that it is based on, have one of the keys?
bool entry_says(const Yaml& name, std::string_view kind, std::string_view base,
                const std::vector<std::string>& keys) {
  for (const Entry& entry : entry_with_bases(name, kind, base))
    for (const std::string& key : keys)
      if (YamlMap(entry.yaml).has(key)) return true;
  return false;
}

/// Does the entry that `name` names, or one that it is based on, list the ranks of each node?
bool entry_lists_nodes(const Yaml& name) {
  for (const Entry& entry : entry_with_bases(name, cluster_entries, "system"))
    if (const auto each = YamlMap(entry.yaml).find("ranks_per_node")) return each->is_list();
  return false;
}

/// The first layer of a cluster that says how many nodes or ranks there are; a list of the ranks of
/// each node says so.
std::optional<YamlMap> sized_layer(const std::vector<Entry>& layers) {
  for (const Entry& layer : layers) {
    YamlMap keys(layer.yaml);
    const auto each = keys.find("ranks_per_node");
    if (keys.has("nodes") || keys.has("ranks") || (each && each->is_list())) return keys;
  }
  return std::nullopt;
}

bool says(const std::vector<Entry>& layers, std::string_view key) {
  return std::ranges::any_of(layers,
                             [&](const Entry& layer) { return YamlMap(layer.yaml).has(key); });
}

/// Throws InputError where the scenario's nodes stay beside another cluster that links none.
void check_linked(const Yaml& cluster, std::int64_t nodes, const std::vector<Setting>& settings) {
  if (nodes < 2 || touches(settings, "cluster.inter_node") ||
      is_set(settings, "cluster.calibration"))
    return;
  const std::vector<Entry> layers = entry_with_bases(cluster, cluster_entries, "system");
  if (says(layers, "inter_node") || says(layers, "calibration")) return;
  for (const Entry& layer : layers) YamlMap(layer.yaml).refuse_slip("inter_node", cluster_keys());
  cluster.fail(
      fmt::format("missing key \"inter_node\": what links the nodes, such as ib-ndr or "
                  "ethernet-100g; the scenario's {} nodes are kept: --nodes 1 predicts one machine",
                  nodes));
}

/// Puts the size that the scenario's cluster had beside the name of the ready cluster that took its
/// place.
void keep_size(Yaml& scenario, const std::vector<Entry>& before,
               const std::vector<Setting>& settings) {
  const auto now = value_at(scenario, {"cluster"});
  const auto had = sized_layer(before);
  if (!now || !now->is_scalar() || !had) return;
  std::vector<std::string> sizes{"nodes", "ranks"};
  const auto each = had->find("ranks_per_node");
  const bool listed = each && each->is_list();
  if (listed) sizes.emplace_back("ranks_per_node");
  const bool sized = std::any_of(sizes.begin(), sizes.end(), [&](const std::string& key) {
    return is_set(settings, "cluster." + key);
  });
  if (sized || entry_says(*now, cluster_entries, "system", {"nodes", "ranks"})) return;
  if (entry_lists_nodes(*now) && !is_set(settings, "cluster.ranks_per_node")) return;
  // Here, where the scenario's own place is still known.
  if (const auto nodes = had->find("nodes"); listed && nodes)
    check_listed_nodes(*nodes, nodes->scalar(), each->size());
  if (listed && entry_says(*now, cluster_entries, "system", {"ranks_per_node"})) {
    // Its nodes are of one kind: there are as many of them as before.
    check_linked(*now, static_cast<std::int64_t>(each->size()), settings);
    const Yaml nodes = Yaml::of_text(std::to_string(each->size()));
    return scenario.put({"cluster", "nodes"}, nodes, scenario_keys());
  }
  if (const auto nodes = had->find("nodes"); nodes && nodes->is_scalar())
    check_linked(*now, parse_integer(nodes->scalar()).value_or(0), settings);
  for (const std::string& key : sizes)
    if (const auto value = had->find(key)) scenario.put({"cluster", key}, *value, scenario_keys());
}

/// Puts the number of NICs of the link that was there beside the name of the one that took its
/// place.
void keep_nics(Yaml& scenario, const Yaml& before) {
  const auto now = value_at(scenario, {"cluster", "inter_node"});
  const auto nics = value_at(before, {"nics"});
  if (!now || !now->is_scalar() || !nics) return;
  if (entry_says(*now, link_entries, "base", {"nics"})) return;
  scenario.put({"cluster", "inter_node", "nics"}, *nics, scenario_keys());
}

/// The size of the scenario's cluster; of one that cannot be read nothing: settings may mend it.
ClusterSize size_of_cluster(const Yaml& scenario) {
  const auto cluster = value_at(scenario, {"cluster"});
  if (!cluster) return {};
  try {
    return size_of(layers_of(entry_with_bases(*cluster, cluster_entries, "system")));
  } catch (const InputError&) {
    return {};
  }
}

/// Takes `ranks` out where settings say how many nodes there are or how large they are; what of the
/// two they do not say stays as it is.
void drop_ranks(Yaml& scenario, const std::vector<Setting>& settings) {
  if (!value_at(scenario, {"cluster", "ranks"})) return;
  const ClusterSize had = size_of_cluster(scenario);
  scenario.remove({"cluster", "ranks"});
  const auto keep = [&](const char* key, const std::string& value) {
    if (is_set(settings, fmt::format("cluster.{}", key)) || value_at(scenario, {"cluster", key}))
      return;
    scenario.put({"cluster", key}, Yaml::of_text(value), scenario_keys());
  };
  if (had.nodes) keep("nodes", std::to_string(*had.nodes));
  if (had.ranks_per_node && had.ranks_per_node->equal())
    keep("ranks_per_node", std::to_string(had.ranks_per_node->largest()));
}

/// Takes out of the cluster's mapping what settings of its size replace.
void make_way(Yaml& scenario, const std::vector<Setting>& settings) {
  if (!is_set(settings, "cluster.ranks")) {
    if (is_set(settings, "cluster.nodes") || is_set(settings, "cluster.ranks_per_node"))
      drop_ranks(scenario, settings);
    return;
  }
  const auto cluster = YamlMap(scenario).find("cluster");
  if (!cluster || !cluster->is_map()) return;
  const YamlMap keys(*cluster);
  const bool links_of_both_kinds = keys.has("intra_node") && keys.has("inter_node");
  // Machines stay as they are; how many there are changes.
  const bool machines = keys.has("system") || (links_of_both_kinds && keys.has("ranks_per_node"));
  if ((machines || !links_of_both_kinds) && !is_set(settings, "cluster.nodes"))
    scenario.remove({"cluster", "nodes"});
  if (!machines && !links_of_both_kinds && !is_set(settings, "cluster.ranks_per_node"))
    scenario.remove({"cluster", "ranks_per_node"});
}

/// Takes the file's `nodes` out where a setting lists the ranks of each node.
void make_way_for_list(Yaml& scenario) {
  const auto each = value_at(scenario, {"cluster", "ranks_per_node"});
  if (each && each->is_list()) scenario.remove({"cluster", "nodes"});
}

std::string file_name(const Yaml& yaml) {
  return std::filesystem::path(yaml.file()).filename().string();
}

/// Does a setting put another cluster, or another ready one below its keys, in the place of the
/// scenario's?
bool replaces_cluster(const std::vector<Setting>& settings) {
  return is_set(settings, "cluster") || is_set(settings, "cluster.system");
}

/// The scenario's cluster and the files that it is based on; of one that cannot be read, as nobody
/// needs it where another takes its place, what the scenario itself says.
std::vector<Entry> layers_of_cluster(const Yaml& scenario) {
  const auto cluster = value_at(scenario, {"cluster"});
  if (!cluster) return {};
  try {
    return entry_with_bases(*cluster, cluster_entries, "system");
  } catch (const InputError&) {
    if (!cluster->is_map()) return {};
    return {Entry{*cluster, "inline"}};
  }
}

}  // namespace

void apply_settings(Yaml& scenario, const std::vector<Setting>& settings) {
  std::vector<Setting> whole, links, rest;
  for (const Setting& setting : settings)
    (setting.key == "cluster"    ? whole
     : setting.key == inter_node ? links
                                 : rest)
        .push_back(setting);
  std::stable_sort(rest.begin(), rest.end(),
                   [](const Setting& a, const Setting& b) { return depth(a.key) < depth(b.key); });
  const MapDescription& keys = scenario_keys();
  const std::vector<Entry> before =
      whole.empty() ? std::vector<Entry>() : layers_of_cluster(scenario);
  scenario.apply(whole, &keys);
  const bool nodes_set = is_set(settings, "cluster.nodes") ||
                         (!whole.empty() && value_at(scenario, {"cluster", "nodes"}));
  if (!whole.empty()) keep_size(scenario, before, settings);
  scenario.wrap("cluster", "system");
  make_way(scenario, settings);
  const auto link = value_at(scenario, {"cluster", "inter_node"});
  scenario.apply(links, &keys);
  if (!links.empty() && link) keep_nics(scenario, *link);
  scenario.apply(rest, &keys);
  if (is_set(settings, "cluster.ranks_per_node") && !nodes_set) make_way_for_list(scenario);
}

std::optional<std::string> said_within(const Setting& whole, std::string_view key) {
  if (!key.starts_with(whole.key + ".")) return std::nullopt;
  std::vector<std::string> path;
  for (std::size_t begin = 0, end = 0; end != std::string_view::npos; begin = end + 1) {
    end = key.find('.', begin);
    path.emplace_back(key.substr(begin, end == std::string_view::npos ? end : end - begin));
  }
  try {
    Yaml root = Yaml::of_nothing();
    root.apply({whole});
    const auto value = value_at(root, path);
    return value ? std::optional(value->scalar()) : std::nullopt;
  } catch (const InputError&) {  // told where the setting is applied
    return std::nullopt;
  }
}

void check_agree_within(const std::vector<Setting>& flags, const std::vector<Setting>& set) {
  for (const Setting& flag : flags)
    for (const Setting& setting : set)
      if (const auto said = said_within(setting, flag.key); said && *said != flag.value)
        throw InputError(fmt::format("{} and {} give {} two values: leave one of them out",
                                     setting_text(flag), setting_text(setting), flag.key));
}

std::vector<std::string> left_out_by(const std::vector<Setting>& settings, const Yaml& scenario) {
  if (!replaces_cluster(settings)) return {};
  const std::vector<Entry> before = layers_of_cluster(scenario);
  Yaml changed = scenario;
  apply_settings(changed, settings);
  const std::vector<Entry> now = layers_of_cluster(changed);
  const auto taken = std::find_if(settings.rbegin(), settings.rend(),
                                  [](const Setting& each) { return each.key == "cluster"; });
  const bool mapping = taken != settings.rend() && taken->value.starts_with('{');
  std::vector<std::string> notes;
  for (const char* key : {"skew", "jitter", "exceptions", "launch", "host", "collectives",
                          "interference", "collectives_at_once", "through_host", "price"}) {
    const auto had = std::ranges::find_if(
        before, [&](const Entry& layer) { return YamlMap(layer.yaml).has(key); });
    if (had == before.end() || says(now, key)) continue;
    notes.push_back(fmt::format(
        "cluster.{} of the scenario's own cluster{} is left out, as another cluster takes its "
        "place: {} keeps it",
        key, had->name == "inline" ? "" : fmt::format(" ({})", file_name(had->yaml)),
        mapping ? fmt::format("{}: ... in its mapping", key)
                : fmt::format("--set cluster.{}=... beside it", key)));
  }
  return notes;
}

std::optional<SaidSize> size_left_out_by(const std::vector<Setting>& settings,
                                         const Yaml& scenario) {
  if (!replaces_cluster(settings)) return std::nullopt;
  const auto had = sized_layer(layers_of_cluster(scenario));
  if (!had) return std::nullopt;
  Yaml changed = scenario;
  apply_settings(changed, settings);
  // What stands in the mapping itself was kept, or is what the settings say.
  const auto now = value_at(changed, {"cluster"});
  if (now && now->is_map() && (YamlMap(*now).has("nodes") || YamlMap(*now).has("ranks")))
    return std::nullopt;
  for (const char* key : {"nodes", "ranks"})
    if (const auto value = had->find(key)) return SaidSize{key, value->scalar()};
  return std::nullopt;
}

}  // namespace ddpsim
