// A value that changes another: what a bare value is short for, and mappings of one key in an entry
// and in the entry that it is based on.
//
//     cluster: {system: dgx-h100, inter_node: {nics: 4}}
//
// The system has `inter_node: {base: ib-ndr, nics: 8}`. Read over that, the mapping of the scenario
// is {nics: 4, base: ib-ndr}. Over `inter_node: ib-ndr` it would be the same, since the bare name
// is short for {base: ib-ndr}. What is taken from below keeps its place and its file, so that
// errors and relative paths are those of the file where it is written.

#include <algorithm>

#include "scenarios/reader/format/format.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {
namespace {

bool has_choice(const Type& type, const std::string& name) {
  return std::any_of(type.begin(), type.end(), [&](const Form& form) {
    return std::any_of(form.choices.begin(), form.choices.end(), [&](const NamedChoice& choice) {
      return position_of(name, {choice.name}).has_value();
    });
  });
}

bool is_entry(const Type& type) {
  return std::any_of(type.begin(), type.end(),
                     [](const Form& form) { return form.kind == Form::Kind::entry; });
}

/// The keys that a bare value of `key` gives in the mapping `map`.
std::vector<std::string> keys_meant(const KeyDescription& key, const MapDescription& map) {
  if (!key.about.short_for.empty()) return key.about.short_for;
  if (is_entry(key.type) && map.find("base") != nullptr) return {"base"};
  return {};
}

}  // namespace

std::optional<YAML::Node> Yaml::long_form(const YAML::Node& bare, const KeyDescription& key) {
  const MapDescription* map = map_of(key.type);
  if (map == nullptr || !bare.IsScalar() || bare.Scalar().empty()) return std::nullopt;
  const std::string& text = bare.Scalar();
  YAML::Node whole(YAML::NodeType::Map);
  if (!map->single.empty()) {  // a name, or a mapping of the name to its settings
    const std::vector<std::string> names = map->key_names();
    const auto named = position_of(text, names);
    if (!named) return std::nullopt;
    whole.force_insert(names[*named], YAML::Node(YAML::NodeType::Map));
    return whole;
  }
  for (const std::string& name : keys_meant(key, *map)) {
    const KeyDescription* inner = map->find(name);
    // A word that the mapping has no key for, such as `launch: sync`.
    if (inner == nullptr || (has_choice(key.type, text) && !has_choice(inner->type, text)))
      return std::nullopt;
    whole.force_insert(name, bare);
  }
  return whole;
}

std::string Yaml::origin_of(const YAML::Node& node, const Changes& changes,
                            const std::string& otherwise) {
  for (const auto& [moved, file] : changes.origins)
    if (moved.is(node)) return file;
  return otherwise;
}

YAML::Node Yaml::joined(const YAML::Node& map, const Yaml& below, const MapDescription& keys,
                        Changes& changes) const {
  YAML::Node copy(YAML::NodeType::Map);
  const YamlMap lower(below);
  std::vector<std::string> here;
  for (const auto& item : map) {
    const std::string name = item.first.IsScalar() ? item.first.Scalar() : "";
    here.push_back(name);
    const KeyDescription* key = keys.find(name);
    const MapDescription* inner = key == nullptr ? nullptr : map_of(key->type);
    const auto other = lower.find(name);
    const bool both = inner != nullptr && other && item.second.IsMap() && other->is_map();
    copy.force_insert(item.first,
                      both ? joined(item.second, *other, *inner, changes) : item.second);
  }
  for (const auto& [name, value] : lower.entries()) {
    if (std::find(here.begin(), here.end(), name) != here.end()) continue;
    copy.force_insert(name, value.node_);
    changes.origins.emplace_back(value.node_, value.file_);
  }
  changes.copies.emplace_back(copy, mark_of(map, changes));
  return copy;
}

Yaml Yaml::over(const Yaml& below, const KeyDescription& key) const {
  const MapDescription* keys = map_of(key.type);
  if (!is_map() || keys == nullptr || !keys->single.empty() || YamlMap(*this).has("base"))
    return *this;
  Yaml whole = below;
  if (!below.is_map()) {
    const auto node = long_form(below.node_, key);
    if (!node) return *this;
    whole.node_.reset(*node);
  }
  Changes changes = *changes_;
  const Changes& lower = *below.changes_;
  changes.copies.insert(changes.copies.end(), lower.copies.begin(), lower.copies.end());
  changes.origins.insert(changes.origins.end(), lower.origins.begin(), lower.origins.end());
  Yaml result = *this;
  result.node_.reset(joined(node_, whole, *keys, changes));
  result.changes_ = std::make_shared<Changes>(std::move(changes));
  return result;
}

}  // namespace ddpsim
