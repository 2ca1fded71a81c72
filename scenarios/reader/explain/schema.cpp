#include "scenarios/reader/explain/schema.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/text/names.hpp"
#include "scenarios/reader/text/quantity_text.hpp"

namespace ddpsim {
namespace {

using Json = nlohmann::ordered_json;

/// A scalar as YAML takes it: a truth value, a number, or else a text.
Json typed(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (const auto whole = parse_integer(text)) return *whole;
  if (const auto number = parse_number(text)) return *number;
  return text;
}

Json typed(const YAML::Node& node) {
  if (node.IsSequence()) {
    Json items = Json::array();
    for (const YAML::Node& item : node) items.push_back(typed(item));
    return items;
  }
  if (node.IsMap()) {
    Json entries = Json::object();
    for (const auto& entry : node) entries[entry.first.Scalar()] = typed(entry.second);
    return entries;
  }
  return node.IsNull() ? Json() : typed(node.Scalar());
}

/// "^(?:[Aa][Dd][Aa][Mm])$": any of the names, in any case.
std::string in_any_case(const std::vector<std::string>& names) {
  std::string pattern;
  for (const std::string& name : names) {
    pattern += pattern.empty() ? "" : "|";
    for (const char c : name) {
      const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      if (lower >= 'a' && lower <= 'z')
        pattern += {'[', static_cast<char>(lower - 'a' + 'A'), lower, ']'};
      else if (c == '.' || c == '+')
        pattern += {'\\', c};
      else
        pattern += c;
    }
  }
  return fmt::format("^(?:{})$", pattern);
}

Json texts(const std::string& pattern) {
  return Json::object({{"type", "string"}, {"pattern", pattern}});
}

/// The names themselves, for editors to offer, and any way to write them.
std::vector<Json> names_in_any_case(const std::vector<std::string>& names) {
  Json offered = Json::array();
  for (const std::string& name : names) {
    offered.push_back(name);
    if (const Json value = typed(name); !value.is_string()) offered.push_back(value);
  }
  return {Json::object({{"enum", offered}}), texts(in_any_case(names))};
}

/// The names of a catalogue and those of families with one member.
std::vector<Json> catalogue_entries(std::string_view catalogue) {
  const Json paths = texts("/|.\\.ya?ml$");
  if (catalogue.empty()) return {paths};
  const std::vector<std::string> names = catalogue_names(catalogue);
  std::vector<std::string> meant = names;
  for (const std::string& name : names)
    for (std::size_t size = 1; size < name.size(); ++size)
      if (const std::string begin = name.substr(0, size);
          !position_of(begin, names) && family_of(begin, names).size() == 1)
        meant.push_back(begin);
  return {Json::object({{"enum", names}}), texts(in_any_case(meant)), paths};
}

/// What a scalar may be in this form: any of several schemas, none for a list or mapping.
std::vector<Json> scalar_schemas(const Form& form) {
  using Kind = Form::Kind;
  const auto quantity = [](Quantity which, Sign sign) {
    return std::vector{texts(quantity_pattern(which, sign))};
  };
  switch (form.kind) {
    case Kind::text:
    case Kind::path:
      return {
          Json::object({{"type", Json::array({"string", "number", "boolean"})}, {"minLength", 1}})};
    case Kind::boolean:
      return {Json::object({{"type", Json::array({"boolean", "string"})},
                            {"pattern", "^(?:true|True|TRUE|false|False|FALSE)$"}})};
    case Kind::integer: {
      Json schema =
          Json::object({{"type", Json::array({"integer", "string"})}, {"minimum", form.lowest}});
      if (form.highest != std::numeric_limits<std::int64_t>::max())
        schema["maximum"] = form.highest;
      schema["pattern"] = integer_pattern();
      return {schema};
    }
    case Kind::number:
      return {Json::object({{"type", Json::array({"number", "string"})},
                            {"minimum", form.least},
                            {"maximum", form.most},
                            {"pattern", number_pattern()}})};
    case Kind::time:
      return quantity(Quantity::duration, form.zero ? Sign::not_negative : Sign::positive);
    case Kind::size:
      return quantity(Quantity::bytes, Sign::positive);
    case Kind::bandwidth:
      return quantity(Quantity::bandwidth, Sign::positive);
    case Kind::flop_rate:
      return quantity(Quantity::flop_rate, Sign::positive);
    case Kind::percent:
      return {texts(percent_pattern())};
    case Kind::times:
      return {texts(times_pattern())};
    case Kind::price:
      return {texts(price_pattern())};
    case Kind::choice: {
      std::vector<std::string> names;
      for (const NamedChoice& choice : form.choices) names.push_back(choice.name);
      return names_in_any_case(names);
    }
    case Kind::constant:
      return {Json::object({{"const", form.choices.front().name}})};
    case Kind::entry:
      return catalogue_entries(form.catalogue);
    case Kind::list:
    case Kind::map:
    case Kind::free_map:
    case Kind::anything:
      return {};
  }
  return {};
}

class Writer {
 public:
  Json of(const Format& format) {
    const std::string root = reference(format.root(), format.of_parts);
    Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                {"title", "ddpsim: " + format.title},
                {"type", "object"},
                {"$ref", root}};
    schema["$defs"] = std::move(definitions_);
    return schema;
  }

 private:
  /// Where the schema of a mapping stands, written once. `is_part`: what it needs may stand
  /// elsewhere.
  std::string reference(const MapDescription& map, bool is_part = false) {
    const std::string name = map.name + (is_part ? "_part" : "");
    if (written_.insert(name).second) {
      definitions_[name] = Json::object();  // its place, before those of the maps within
      Json schema = mapping(map, is_part);
      definitions_[name] = std::move(schema);
    }
    return "#/$defs/" + name;
  }

  /// `of_parts`: a mapping may be a part of one that stands elsewhere.
  Json value(const Type& type, bool of_parts = false) {
    Json schema = Json::object();
    std::vector<Json> scalars;
    std::set<std::string> containers;
    for (const Form& form : type) {
      for (Json& scalar : scalar_schemas(form)) scalars.push_back(std::move(scalar));
      if (form.kind == Form::Kind::anything) return schema;
      if (form.kind == Form::Kind::list) {
        containers.insert("array");
        schema["items"] = value(form.items);
        if (form.fewest_items > 0) schema["minItems"] = form.fewest_items;
        if (form.most_items > 0) schema["maxItems"] = form.most_items;
      } else if (form.kind == Form::Kind::map) {
        containers.insert("object");
        schema["$ref"] = reference(form.map(), of_parts && may_be_part(form.map()));
      } else if (form.kind == Form::Kind::free_map) {
        containers.insert("object");
        schema["additionalProperties"] = scalar_schemas({}).front();
      }
    }
    add_scalars(schema, std::move(scalars), containers);
    return schema;
  }

  /// Keywords of texts and numbers say nothing of lists and mappings, and the other way round; so
  /// one kind of scalar stands beside them, and an error points to what is wrong within. Of
  /// several, any holds.
  static void add_scalars(Json& schema, std::vector<Json> scalars,
                          const std::set<std::string>& containers) {
    if (scalars.size() == 1 && !scalars.front().contains("const")) {
      Json& types = scalars.front()["type"];
      if (!types.is_array() && !containers.empty()) types = Json::array({types});
      for (const std::string& container : containers) types.push_back(container);
      schema.update(scalars.front());
      return;
    }
    if (!scalars.empty() && !containers.empty())
      scalars.push_back(Json::object({{"type", containers}}));
    if (scalars.empty())
      schema["type"] = containers;
    else if (scalars.size() == 1)
      schema.update(scalars.front());
    else
      schema["anyOf"] = scalars;
  }

  Json key(const KeyDescription& key, bool of_parts = false) {
    const About& about = key.about;
    std::string description(about.meaning);
    if (!about.otherwise.empty())
      description += fmt::format(" Where it is missing: {}.", about.otherwise);
    Json schema{{"description", description}};
    schema.update(value(key.type, of_parts));
    if (!about.unset.empty()) schema["default"] = typed(YAML::Load(about.unset));
    if (!about.example.empty())
      schema["examples"] = Json::array({typed(YAML::Load(about.example))});
    return schema;
  }

  Json presence(const Presence& presence) {
    Json schema = Json::object();
    if (presence.absent) return Json::object({{"not", requires_keys(Json::array({presence.key}))}});
    if (!presence.or_absent) schema["required"] = Json::array({presence.key});
    if (!presence.value.empty()) schema["properties"][presence.key] = value(presence.value);
    return schema;
  }

  Json properties(const MapDescription& map) {
    Json all = Json::object();
    const bool of_parts = layered_by(map) != nullptr;
    for (const KeyDescription& each : map.keys) all[each.name] = key(each, of_parts);
    return all;
  }

  /// The key that names what a mapping changes; null: it changes nothing.
  static const char* layered_by(const MapDescription& map) {
    for (const char* key : {"base", "system"})
      if (map.find(key) != nullptr) return key;
    return nullptr;
  }

  /// Can a mapping over one with the same key (Yaml::over) have a part of its keys?
  static bool may_be_part(const MapDescription& map) {
    return map.single.empty() && map.variants.empty() && map.keys.size() > 1 &&
           (!map.needs.empty() || std::ranges::any_of(map.keys, [](const KeyDescription& key) {
             return key.about.required;
           }));
  }

  Json mapping(const MapDescription& map, bool is_part) {
    Json schema{{"description", map.meaning}};
    if (!map.variants.empty()) {
      add_variants(schema, map);
      return schema;
    }
    schema["properties"] = properties(map);
    schema["additionalProperties"] = false;
    if (!map.single.empty()) schema["minProperties"] = schema["maxProperties"] = 1;
    if (!is_part) schema.update(needs_of(map));
    if (Json parts = needs_of_parts(map); !parts.empty()) schema["allOf"].push_back(parts);
    for (const Exclusion& exclusion : map.exclusions)
      for (const std::string& other : exclusion.others)
        schema["dependentSchemas"][other]["properties"][exclusion.key] = false;
    return schema;
  }

  /// What a mapping needs; of anything else it says nothing.
  Json needs_of(const MapDescription& map) {
    Json schema = Json::object();
    Json required = Json::array();
    for (const KeyDescription& each : map.keys)
      if (each.about.required) required.push_back(each.name);
    Json all = Json::array();
    if (!required.empty()) {
      if (map.find("base") == nullptr)
        schema["required"] = required;
      else  // what it is based on may have them
        all.push_back(any_of({requires_keys(Json::array({"base"})), requires_keys(required)}));
    }
    for (const Need& need : map.needs) {
      std::vector<Json> any;
      for (const Presence& each : need.any_of) any.push_back(presence(each));
      all.push_back(any_of(any));
    }
    if (!all.empty()) schema["allOf"] = all;
    return schema;
  }

  /// Mappings that may be parts are whole where nothing is named that they could change.
  Json needs_of_parts(const MapDescription& map) {
    Json properties = Json::object();
    const char* named = layered_by(map);
    if (named == nullptr) return properties;
    for (const KeyDescription& each : map.keys)
      if (const MapDescription* inner = map_of(each.type); inner != nullptr && may_be_part(*inner))
        properties[each.name] = needs_of(*inner);
    if (properties.empty()) return properties;
    return Json::object({{"if", Json::object({{"not", requires_keys(Json::array({named}))}})},
                         {"then", Json::object({{"properties", properties}})}});
  }

  /// Which keys there are depends on one of them.
  void add_variants(Json& schema, const MapDescription& map) {
    const KeyDescription* which = map.find(map.variant_key);
    schema["properties"][map.variant_key] = key(*which);
    Json all = Json::array();
    for (const MapDescription::Variant& variant : map.variants) {
      const Form name{.kind = Form::Kind::choice, .choices = {{variant.name, ""}}};
      all.push_back(Json::object({{"if", presence({.key = map.variant_key, .value = {name}})},
                                  {"then", Json::object({{"$ref", reference(*variant.map)}})}}));
    }
    const Json known = requires_keys(Json::array({map.variant_key}));
    all.push_back(Json::object({{"if", Json::object({{"not", known}})},
                                {"then", Json::object({{"required", Json::array({"base"})},
                                                       {"properties", properties(map)},
                                                       {"additionalProperties", false}})}}));
    schema["allOf"] = all;
  }

  static Json requires_keys(const Json& keys) { return Json::object({{"required", keys}}); }
  static Json any_of(const std::vector<Json>& schemas) {
    return Json::object({{"anyOf", schemas}});
  }

  Json definitions_ = Json::object();
  std::set<std::string> written_;
};

}  // namespace

std::string json_schema(const Format& format) {
  return Writer().of(format).dump(2) + "\n";
}

}  // namespace ddpsim
