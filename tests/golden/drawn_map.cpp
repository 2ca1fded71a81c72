#include "tests/golden/drawn_map.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "model/parallel/strategy.hpp"
#include "scenarios/reader/catalogue/catalogue.hpp"
#include "tests/golden/hints.hpp"
#include "tests/golden/quantities.hpp"

namespace ddpsim::golden {
namespace {

/// Is it the name of a strategy that shards?
bool is_sharding(const std::string& name) {
  const std::optional<Strategy> strategy = strategy_named(name);
  return strategy && shards(*strategy);
}

constexpr int usual_percent = 7;

using Entries = std::vector<std::pair<std::string, std::string>>;

std::string below(const std::string& place, const std::string& key) {
  return place.empty() ? key : place + "." + key;
}

bool has(const Entries& entries, const std::string& key) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const auto& entry) { return entry.first == key; });
}

/// Does `key` exclude one of the entries, or one of them it?
bool excluded(const MapDescription& map, const Entries& entries, const std::string& key) {
  for (const Exclusion& rule : map.exclusions)
    for (const std::string& other : rule.others)
      if ((rule.key == key && has(entries, other)) || (other == key && has(entries, rule.key)))
        return true;
  return false;
}

/// How often a form is drawn, beside others. A cluster is more than the name of a ready one.
int weight(const Form& form) {
  switch (form.kind) {
    case Form::Kind::entry:
      return form.catalogue == cluster_entries ? 1 : 12;
    case Form::Kind::choice:
      return 6;
    case Form::Kind::path:
    case Form::Kind::free_map:
    case Form::Kind::anything:
      return 0;
    case Form::Kind::list:
      return 1;
    default:
      return 4;
  }
}

/// Of a cluster of which a ready system gives all: a key that says otherwise is the exception.
int percent_of(const MapDescription& map, const KeyDescription& key, const Entries& before) {
  if (key.about.required) return 100;
  const bool ready = map.name == "cluster" && has(before, "system");
  if (ready && (key.name == "device" || key.name.ends_with("_node"))) return 8;
  if (map.name == "link" && key.name == "bandwidth" && !has(before, "base")) return 100;
  const std::optional<Hint> hint = hint_of(map, key);
  return hint ? hint->percent : usual_percent;
}

}  // namespace

bool DrawnMap::pinned_below(const std::string& place) const {
  const auto next = pins_.lower_bound(place + ".");
  return next != pins_.end() && next->first.starts_with(place + ".");
}

Entries DrawnMap::entries(const MapDescription& map, const std::string& place) const {
  Entries entries;
  const MapDescription* keys = &map;
  if (!map.variant_key.empty()) {
    Words names;
    for (const auto& variant : map.variants) names.push_back(variant.name);
    const std::string key = below(place, map.variant_key);
    const auto pin = pins_.find(key);
    const std::string name = pin == pins_.end() ? draw_.any_of(key, names) : pin->second;
    const auto variant = std::find_if(map.variants.begin(), map.variants.end(),
                                      [&](const auto& each) { return each.name == name; });
    entries.emplace_back(map.variant_key, name);
    keys = variant->map;
  }
  if (!keys->single.empty()) {
    Words names;
    for (const KeyDescription& key : keys->keys) {
      const std::optional<Hint> hint = hint_of(*keys, key);
      const std::string here = below(place, key.name);
      if (pins_.contains(here) || pinned_below(here)) return {{key.name, value(*keys, key, here)}};
      if (!hint || hint->percent > 0) names.push_back(key.name);
    }
    const KeyDescription& key = *keys->find(draw_.any_of(place + "?", names));
    return {{key.name, value(*keys, key, below(place, key.name))}};
  }
  for (const bool pinned : {true, false})  // what must be there goes before what may be there
    for (const KeyDescription& key : keys->keys) {
      const std::string here = below(place, key.name);
      const auto pin = pins_.find(here);
      if (has(entries, key.name) || (pin != pins_.end() && pin->second == "-")) continue;
      const bool is_pinned = pin != pins_.end() || pinned_below(here) || key.about.required;
      if (is_pinned != pinned || excluded(*keys, entries, key.name)) continue;
      if (pinned || draw_.chance(here + "?", percent_of(*keys, key, entries)))
        entries.emplace_back(key.name, value(*keys, key, here));
    }
  return entries;
}

std::string DrawnMap::text(const MapDescription& map, const std::string& place) const {
  std::string all;
  for (const auto& [key, value] : entries(map, place))
    all += fmt::format("{}{}: {}", all.empty() ? "" : ", ", key, value);
  return "{" + all + "}";
}

std::string DrawnMap::value(const MapDescription& map, const KeyDescription& key,
                            const std::string& place) const {
  const auto pin = pins_.find(place);
  if (pin != pins_.end() && !pin->second.empty()) return pin->second;
  const std::optional<Hint> hint = hint_of(map, key);
  if (hint && !hint->words.empty() && !pinned_below(place)) return draw_.any_of(place, hint->words);
  const bool mapped = pinned_below(place) && map_of(key.type) != nullptr;
  int all = 0;
  for (const Form& form : key.type) all += weight(form);
  if (all == 0) return key.about.example.empty() ? "any" : key.about.example;
  std::int64_t drawn = draw_.between(place + "|", 0, all - 1);
  for (const Form& form : key.type) {
    if (mapped ? form.kind == Form::Kind::map : (drawn -= weight(form)) < 0)
      return of_form(form, key, place);
  }
  return "any";
}

std::string DrawnMap::list(const Form& form, const KeyDescription& key,
                           const std::string& place) const {
  std::string all;
  const auto add = [&](const std::string& item) { all += (all.empty() ? "" : ", ") + item; };
  if (form.items.size() == 1 && form.items[0].kind == Form::Kind::choice) {  // each at most once
    Words names;
    for (const NamedChoice& choice : form.items[0].choices) {
      if (is_sharding(choice.name)) continue;  // no draw takes it
      names.push_back(choice.name);
      if (draw_.chance(place + "?" + choice.name, 50)) add(choice.name);
    }
    if (all.empty()) add(draw_.any_of(place, names));
    return "[" + all + "]";
  }
  const std::int64_t most = form.most_items > 0 ? static_cast<std::int64_t>(form.most_items) : 3;
  const std::int64_t count = draw_.between(place + "#", 1, std::min<std::int64_t>(most, 3));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string here = below(place, std::to_string(i));
    add(of_form(form.items[draw_.number(here + "|") % form.items.size()], key, here));
  }
  return "[" + all + "]";
}

std::string DrawnMap::of_form(const Form& form, const KeyDescription& key,
                              const std::string& place) const {
  Words names;
  for (const NamedChoice& choice : form.choices) names.push_back(choice.name);
  const std::string& near = key.about.example.empty() ? key.about.unset : key.about.example;
  switch (form.kind) {
    case Form::Kind::boolean:
      return draw_.chance(place, 75) == (key.about.unset != "true") ? "true" : "false";
    case Form::Kind::choice:
    case Form::Kind::constant:
      return draw_.any_of(place, names);
    case Form::Kind::entry:
      return draw_.any_of(place, catalogue_names(form.catalogue));
    case Form::Kind::list:
      return list(form, key, place);
    case Form::Kind::map:
      return text(form.map(), place);
    case Form::Kind::integer:
    case Form::Kind::number:
    case Form::Kind::time:
    case Form::Kind::size:
    case Form::Kind::bandwidth:
    case Form::Kind::flop_rate:
    case Form::Kind::percent:
    case Form::Kind::times:
    case Form::Kind::price:
      return drawn_quantity(draw_, form, near, place);
    case Form::Kind::text:
    case Form::Kind::path:
    case Form::Kind::free_map:
    case Form::Kind::anything:
      break;
  }
  const bool plain = !near.empty() && near.front() != '[' && near.front() != '{';
  return plain ? near : "any";
}

}  // namespace ddpsim::golden
