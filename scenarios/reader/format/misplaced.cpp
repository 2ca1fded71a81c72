#include "scenarios/reader/format/misplaced.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "scenarios/reader/format/format.hpp"
#include "scenarios/reader/format/suits.hpp"

namespace ddpsim {
namespace {

/// A key of a scenario, by the path of the mapping that it stands in ("" for the scenario itself).
struct KeyPlace {
  std::string mapping;
  const KeyDescription* key = nullptr;
  std::ptrdiff_t depth = 0;  ///< how many mappings are around it
};

constexpr std::ptrdiff_t own_mappings = 1;  ///< the depth of keys such as training.bucket_cap
constexpr std::size_t most_told = 2;

/// The keys that `wanted` takes, of those the ones of least depth; none if `here` is no mapping of
/// scenarios, or they are too many to be told.
template <typename Wanted>
std::vector<KeyPlace> nearest_places(const MapDescription& here, std::ptrdiff_t most_depth,
                                     Wanted wanted) {
  std::vector<KeyPlace> places;
  bool of_scenarios = false;
  walk(format_named("scenario").root(),
       [&](const std::string& path, const MapDescription& map, const KeyDescription& key) {
         of_scenarios = of_scenarios || &map == &here;
         const std::ptrdiff_t depth = std::count(path.begin(), path.end(), '.');
         if (&map == &here || depth > most_depth || !wanted(key)) return;
         if (!places.empty() && depth < places.front().depth) places.clear();
         if (!places.empty() && depth > places.front().depth) return;
         const std::size_t end = path.rfind('.');
         std::string mapping = end == std::string::npos ? "" : path.substr(0, end);
         const bool known = std::any_of(places.begin(), places.end(), [&](const KeyPlace& each) {
           return each.mapping == mapping;
         });
         if (!known) places.push_back(KeyPlace{std::move(mapping), &key, depth});
       });
  if (!of_scenarios || places.size() > most_told) places.clear();
  return places;
}

/// ": write training: {bucket_cap: 25 MiB}", or as a setting; "" where no value is known.
std::string how_to_write(const KeyPlace& place, const std::string& value, bool as_setting) {
  if (value.empty()) return "";
  return as_setting ? fmt::format(": write {}.{}={}", place.mapping, place.key->name, value)
                    : fmt::format(": write {}: {{{}: {}}}", place.mapping, place.key->name, value);
}

/// The value that was given, where the key takes it; else one that it does take.
std::string value_to_write(const Yaml& given, const KeyDescription& key) {
  constexpr std::size_t most = 40;  // characters of a value worth repeating
  const std::string& scalar = given.scalar();
  return given.is_scalar() && scalar.size() <= most && suits(key.type, scalar) ? scalar
                                                                               : example_value(key);
}

bool takes_name(const KeyDescription& key, const std::string& name) {
  return std::any_of(key.type.begin(), key.type.end(), [&](const Form& form) {
    return form.kind == Form::Kind::choice &&
           std::any_of(form.choices.begin(), form.choices.end(),
                       [&](const NamedChoice& choice) { return choice.name == name; });
  });
}

}  // namespace

std::string told_misplaced(const std::string& name, const Yaml& value, const MapDescription& here,
                           Depth depth) {
  constexpr std::ptrdiff_t deepest = 100;
  const auto places = nearest_places(here, depth == Depth::shallow ? own_mappings : deepest,
                                     [&](const KeyDescription& key) { return key.name == name; });
  if (places.empty()) return "";
  const KeyPlace& first = places.front();
  if (first.mapping.empty())
    return fmt::format(
        "{} is a key of the scenario itself: write it beside workload and cluster, not below them",
        name);
  std::string text = fmt::format("{} is a key of {}", name, first.mapping);
  if (places.size() > 1) return text + fmt::format(" and of {}", places.back().mapping);
  if (first.depth > own_mappings) return text;
  if (!value.is_scalar()) return text + ": write it there";
  return text + how_to_write(first, value_to_write(value, *first.key), value.is_setting());
}

std::string told_as_value(const std::string& name, const Yaml& value, const MapDescription& here) {
  const auto places = nearest_places(
      here, own_mappings, [&](const KeyDescription& key) { return takes_name(key, name); });
  if (places.empty() || places.front().depth < own_mappings) return "";
  std::string text;
  for (const KeyPlace& place : places)
    text += fmt::format("{}{}.{}", text.empty() ? "" : " and of ", place.mapping, place.key->name);
  return fmt::format("{} is a value of {}", name, text) +
         (places.size() == 1 ? how_to_write(places.front(), name, value.is_setting()) : "");
}

bool belongs_below(const std::string& name, const MapDescription& here) {
  return std::any_of(here.keys.begin(), here.keys.end(), [&](const KeyDescription& key) {
    const MapDescription* below = map_of(key.type);
    return below != nullptr && below->find(name) != nullptr;
  });
}

}  // namespace ddpsim
