#include "scenarios/reader/format/format.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace ddpsim {
namespace {

using Visit = std::function<void(const std::string&, const MapDescription&, const KeyDescription&)>;

void walk_type(const Type& type, const std::string& path, std::vector<const MapDescription*>& open,
               const Visit& visit);

void walk_map(const MapDescription& map, const std::string& path,
              std::vector<const MapDescription*>& open, const Visit& visit) {
  if (std::find(open.begin(), open.end(), &map) != open.end()) return;
  open.push_back(&map);
  for (const KeyDescription& key : map.keys) {
    const std::string here = path.empty() ? key.name : path + "." + key.name;
    visit(here, map, key);
    walk_type(key.type, here, open, visit);
  }
  open.pop_back();
}

void walk_type(const Type& type, const std::string& path, std::vector<const MapDescription*>& open,
               const Visit& visit) {
  for (const Form& form : type) {
    if (form.kind == Form::Kind::map) walk_map(form.map(), path, open, visit);
    walk_type(form.items, path, open, visit);
  }
}

std::string joined(const std::vector<std::string>& parts, const char* last) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? last : ", ") + parts[i];
  return text;
}

std::string choices_of(const Form& form, const std::string& quote) {
  std::vector<std::string> names;
  for (const NamedChoice& choice : form.choices)
    names.push_back(fmt::format("{0}{1}{0}", quote, choice.name));
  return joined(names, " or ");
}

std::string range_of(const Form& form) {
  if (form.kind == Form::Kind::integer)
    return form.highest == std::numeric_limits<std::int64_t>::max()
               ? fmt::format(" from {}", form.lowest)
               : fmt::format(" from {} to {}", form.lowest, form.highest);
  return fmt::format(" from {:g} to {:g}", form.least, form.most);
}

std::string description_of(const Form& form, const std::string& quote) {
  switch (form.kind) {
    case Form::Kind::text:
      return "a text";
    case Form::Kind::path:
      return "the path of a file";
    case Form::Kind::boolean:
      return quote + "true" + quote + " or " + quote + "false" + quote;
    case Form::Kind::integer:
      return "a whole number" + range_of(form);
    case Form::Kind::number:
      return "a number" + range_of(form);
    case Form::Kind::time:
      return form.zero ? "a time" : "a time above zero";
    case Form::Kind::size:
      return "a size";
    case Form::Kind::bandwidth:
      return "a rate of bytes or bits";
    case Form::Kind::flop_rate:
      return "a rate of floating-point operations";
    case Form::Kind::percent:
      return "a percentage";
    case Form::Kind::times:
      return "such a number with an x behind it";
    case Form::Kind::price:
      return "a price per hour";
    case Form::Kind::choice:
    case Form::Kind::constant:
      return choices_of(form, quote);
    case Form::Kind::entry:
      return fmt::format("a name from {0}ddpsim list {1}{0}", quote, form.catalogue);
    case Form::Kind::list:
      return "a list, each entry " + description_of(form.items, quote);
    case Form::Kind::map:
      return "a mapping";
    case Form::Kind::free_map:
      return "a mapping of keys to texts";
    case Form::Kind::anything:
      return "anything";
  }
  return "";
}

}  // namespace

const KeyDescription* MapDescription::find(std::string_view key) const {
  const auto found = std::find_if(keys.begin(), keys.end(),
                                  [&](const KeyDescription& each) { return each.name == key; });
  return found == keys.end() ? nullptr : &*found;
}

const MapDescription* map_of(const Type& type) {
  const auto found = std::find_if(type.begin(), type.end(),
                                  [](const Form& form) { return form.kind == Form::Kind::map; });
  return found == type.end() ? nullptr : &found->map();
}

std::vector<std::string> MapDescription::key_names() const {
  std::vector<std::string> names;
  for (const KeyDescription& key : keys) names.push_back(key.name);
  return names;
}

void walk(const MapDescription& root, const Visit& visit) {
  std::vector<const MapDescription*> open;
  walk_map(root, "", open, visit);
}

std::string description_of(const Type& type, const std::string& quote) {
  std::vector<std::string> forms;
  for (const Form& form : type) {
    forms.push_back(description_of(form, quote));
    if (form.kind == Form::Kind::entry) forms.emplace_back("the path of a file");
  }
  return joined(forms, " or ");
}

}  // namespace ddpsim
