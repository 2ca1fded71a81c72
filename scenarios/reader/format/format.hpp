#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/reader/text/told.hpp"

namespace ddpsim {

// What a YAML format of ours looks like: a tree of maps and keys. From this one description come
// the reading and writing of files (map.hpp), `ddpsim explain` and docs/scenario.md (reference.hpp)
// and the JSON Schema (schema.hpp). A key that is not described here cannot be read.

struct MapDescription;

/// A name of a closed set and, where the name does not say it, what it stands for.
struct NamedChoice {
  std::string name, meaning;
};

/// One form that a value can take. A value whose key has several forms takes any of them.
struct Form {
  enum class Kind : std::uint8_t {
    text,
    path,       ///< of a file, relative to the file that names it
    boolean,    ///< true or false
    integer,    ///< a whole number from `lowest` to `highest`
    number,     ///< a number from `least` to `most`
    time,       ///< above zero, or zero too (`zero`)
    size,       ///< above zero
    bandwidth,  ///< above zero
    flop_rate,  ///< above zero
    percent,    ///< "1 %"
    times,      ///< "1.3x", from `least` to `most`
    price,      ///< above zero, per hour: "2.5 USD/h"
    choice,     ///< one of `choices`, in any case
    constant,   ///< exactly the one of `choices`
    entry,      ///< the name of an entry of `catalogue`, or the path of a file that holds one
    list,       ///< of `items`
    map,        ///< `map`
    free_map,   ///< keys of the user's choice, each with a text
    anything,
  };
  Kind kind = Kind::text;
  std::int64_t lowest = 0, highest = 0;
  double least = 0, most = 0;
  bool zero = false;
  std::vector<NamedChoice> choices{};
  std::string_view catalogue{};
  std::vector<Form> items{};
  std::size_t fewest_items = 0;
  std::size_t most_items = 0;  ///< 0: any number
  /// A function, because a map may hold itself.
  std::function<const MapDescription&()> map{};
};
using Type = std::vector<Form>;

/// How another program spells what a key of ours says.
struct Elsewhere {
  std::string name;   ///< "bucket_cap_mb"
  std::string owner;  ///< "DistributedDataParallel's"; "" if many spell it so
  /// How to write a plain number given there: "{} MiB". "": the value is written as it is; "-": how
  /// to write it depends; "{}": as it is, and with anything but a number the key is not meant.
  std::string value{};
  std::string note{};  ///< a clause on what differs, "" where nothing does
};

/// What people are told about a key, besides its name and type.
struct About {
  Told meaning;  ///< whole sentences
  /// The value that holds where the key is missing, "" for none. A key that is bound to a field
  /// takes the field's own initial value.
  Told unset{};
  Told otherwise{};  ///< where no single value holds then: a clause
  Told example{};    ///< a value as it is written in YAML; "" where `unset` is example enough
  Told source{};     ///< where the rule or the default comes from
  bool required = false;
  std::vector<Elsewhere> elsewhere{};
  bool always_written = false;  ///< even if it is the initial value
  Told remark{};                ///< a short comment that writing puts beside the value
  /// For a key that takes a mapping or a bare value: the keys of the mapping that the bare value
  /// stands for. Empty: `base` for the name of an entry; for other values nothing, and keys of the
  /// mapping take the place of the value.
  std::vector<std::string> short_for{};
};

struct KeyDescription {
  std::string name;
  Type type;
  About about;
};

/// A key is there, or, if `value` is given, it is there with such a value.
struct Presence {
  std::string key;
  Type value{};
  bool or_absent = false;  ///< or the key is not there at all
  bool absent = false;     ///< the key is not there
};

/// At least one of several things is there.
struct Need {
  std::vector<Presence> any_of;
  Told problem{};          ///< the error; "": that the first key is missing
  bool told_only = false;  ///< the code that reads the map checks this by itself
};

/// `key` does not go with any of `others`.
struct Exclusion {
  std::string key;
  std::vector<std::string> others;
  Told problem;  ///< the error
};

/// A mapping: its keys in the order they are read.
struct MapDescription {
  std::string name;  ///< unique among all maps: "training"
  Told meaning;      ///< whole sentences
  std::vector<KeyDescription> keys{};
  std::vector<Need> needs{};
  std::vector<Exclusion> exclusions{};
  /// If not "": exactly one of the keys is there, and this is the error otherwise.
  Told single{};
  /// If not "": the value of this key says which of the variants a mapping is, and so which of
  /// `keys` there are.
  std::string variant_key{};
  struct Variant {
    std::string name;  ///< a value of that key
    const MapDescription* map;
  };
  std::vector<Variant> variants{};

  const KeyDescription* find(std::string_view key) const;
  std::vector<std::string> key_names() const;
};

/// The mapping that a value of the type can be; null: none.
const MapDescription* map_of(const Type& type);

/// A kind of file.
struct Format {
  std::string name;   ///< as `ddpsim schema` takes it: "scenario"
  std::string title;  ///< "a workload profile"
  const MapDescription& (*root)();
  /// Keys that are needed may stand elsewhere: in flags, or in the file that names this one.
  bool of_parts = false;
};
const std::vector<Format>& all_formats();
/// The one of that name, which there is.
const Format& format_named(std::string_view name);

/// Every key that can be reached from `root`, depth first, with its dotted path. A map within
/// itself is entered once.
void walk(const MapDescription& root,
          const std::function<void(const std::string& path, const MapDescription& map,
                                   const KeyDescription& key)>& visit);

/// "a size", "a whole number from 1 to 8 or a mapping": what a value of the type is. `quote` goes
/// around words to be written as they are.
std::string description_of(const Type& type, const std::string& quote = "");

}  // namespace ddpsim
