#include "tests/golden/families.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/cluster/cluster_reader.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/training/training_reader.hpp"
#include "scenarios/reader/workload/model_reader.hpp"
#include "tests/golden/drawn_files.hpp"

namespace ddpsim::golden {
namespace {

using Families = std::vector<Family>;

void add_catalogue(Families& all) {
  for (const std::string& name : catalogue_names(model_entries))
    all.push_back({"models/" + name, {{"workload.model", name}}, shortened_model});
  for (const std::string& name : catalogue_names(device_entries))
    all.push_back({"devices/" + name, {{"cluster.device", name}, {"cluster.system", "-"}}});
  for (const std::string& name : catalogue_names(cluster_entries))
    all.push_back({"clusters/" + name, {{"cluster.system", name}}});
  for (const std::string& name : catalogue_names(link_entries)) {
    const bool within =
        name.starts_with("nvlink") || name.starts_with("pcie") || name.starts_with("infinity");
    const std::string key = within ? "cluster.intra_node" : "cluster.inter_node";
    all.push_back({"links/" + name,
                   {{"cluster.system", "-"},
                    {within ? "cluster.nodes" : "cluster.ranks_per_node", "1"},
                    {within ? "cluster.ranks_per_node" : "cluster.nodes", ""},
                    {key, name}}});
  }
}

/// The kinds of networks, with sizes of their own.
void add_networks(Families& all) {
  for (const auto& variant : model_keys().variants)
    all.push_back({"networks/" + variant.name, {{"workload.model.family", variant.name}}});
}

/// The words that a value of a key can be, and the keys of the mapping that it can be.
Words members_of(const KeyDescription& key) {
  Words names;
  for (const Form& form : key.type) {
    for (const NamedChoice& choice : form.choices) names.push_back(choice.name);
    if (form.kind == Form::Kind::map && !form.map().single.empty())
      for (const KeyDescription& inner : form.map().keys)
        if (inner.name != "plugin" &&
            std::find(names.begin(), names.end(), inner.name) == names.end())
          names.push_back(inner.name);
  }
  return names;
}

void add_hooks(Families& all) {
  const KeyDescription& hook = *training_keys().find("comm_hook");
  const Pins pins{{"training.strategy", "bucketed"}};
  for (const std::string& name : members_of(hook)) {
    Family family{"hooks/" + name, pins};
    family.pins["training.comm_hook." + name] = name == "none" ? "{}" : "";
    all.push_back(std::move(family));
  }
  all.push_back({"hooks/own steps", pins, own_steps});
}

/// Keys of strategies that shard, which no draw takes.
const std::set<std::string> of_shards{"units",
                                      "reshard_after_forward",
                                      "reshard_after_backward",
                                      "forward_prefetch",
                                      "backward_prefetch",
                                      "replicate",
                                      "reduce_scatter_max_input_buffers",
                                      "separate_reduce_scatter_group",
                                      "cuda_device_max_connections",
                                      "requires_all_reduce",
                                      "mp_policy",
                                      "offload_policy",
                                      "fsdp",
                                      "zero1",
                                      "zero2",
                                      "zero3"};

/// Each other key of `training` and `cluster`, whatever its value.
void add_keys(Families& all) {
  for (const auto& [place, map] :
       {std::pair{"training", &training_keys()}, std::pair{"cluster", &cluster_keys()}})
    for (const KeyDescription& key : map->keys) {
      const std::string path = fmt::format("{}.{}", place, key.name);
      if (key.name == "source" || key.name == "calibration") continue;
      if (of_shards.contains(key.name)) continue;
      Family family{"keys/" + path, {{path, ""}}};
      if (key.name == "buckets") family.more = named_buckets;
      if (key.name == "delay_all_reduce") family.more = delayed_parameters;
      if (key.name == "ranks") family.pins["cluster.nodes"] = "-";
      all.push_back(std::move(family));
    }
}

/// What stands in files beside the scenario, or is written out in it.
void add_files(Families& all) {
  all.push_back({"files/profile", {}, drawn_profile});
  all.push_back({"files/description", {}, drawn_description});
  all.push_back({"files/calibration", {}, drawn_calibration});
  all.push_back({"files/shipped description", {}, shipped_description});
  all.push_back({"files/device", {{"cluster.device.base", ""}, {"cluster.system", "-"}}});
  all.push_back({"files/link", {{"cluster.intra_node.base", ""}, {"cluster.system", "-"}}});
  all.push_back({"files/measured rows", {}, measured_rows});
}

}  // namespace

const Families& all_families() {
  static const Families families = [] {
    Families all;
    add_catalogue(all);
    add_networks(all);
    add_hooks(all);
    add_keys(all);
    add_files(all);
    return all;
  }();
  return families;
}

DrawnScenario drawn_scenario(const Family& family, std::uint64_t seed) {
  const Draw draw(Draw(seed).number(family.name));
  DrawnScenario scenario;
  Pins pins = family.pins;
  if (family.more)
    for (const auto& [place, text] : family.more(draw, pins, scenario.files)) pins[place] = text;
  scenario.text = fmt::format("# {}, seed {}\n", family.name, seed);
  for (const auto& [key, value] : DrawnMap(draw, pins).entries(scenario_keys(), ""))
    scenario.text += fmt::format("{}: {}\n", key, value);
  return scenario;
}

}  // namespace ddpsim::golden
