#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/format/map.hpp"

namespace ddpsim {

/// The keys that every entry of the catalogue has: what it is based on, and where its figures come
/// from.
template <typename T, typename Source>
void add_entry_keys(Map<T>& map, std::string_view kind, Source source) {
  map.key_read("base", {{.kind = Form::Kind::entry, .catalogue = kind}},
               [](T&, const Yaml&) {},  // entry_with_bases has followed it
               {.meaning = "The entry of the catalogue, or the file, that gives all keys that are "
                           "missing here. A chain of at most 32 is followed.",
                .otherwise = "nothing is taken from elsewhere"});
  map.key("source", value::text(), source, {.meaning = "Where the figures come from, for people."});
}

/// Where the figures of an entry come from, by its own `source`; of an entry that is based on
/// another, also whose the rest are: "our own; the rest as a100-80". "": nobody says.
std::string source_of(const std::vector<Entry>& entries);

/// Behind the name of an entry of which a mapping changes keys: "mi300x (changed)".
inline constexpr std::string_view mark_of_changes = " (changed)";
/// A name without that mark: "mi300x".
std::string without_mark(std::string name);

/// An entry with what it is based on, the innermost first, as Map::read takes them.
std::vector<Yaml> layers_of(const std::vector<Entry>& entries);

}  // namespace ddpsim
