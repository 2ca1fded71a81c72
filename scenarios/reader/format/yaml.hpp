#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "model/base/quantity.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/names.hpp"
#include "scenarios/reader/text/nearest.hpp"
#include "scenarios/reader/text/quantity_text.hpp"
#include "scenarios/reader/text/settings.hpp"

namespace ddpsim {

struct KeyDescription;
struct MapDescription;

/// Why `path` will not be read ("no such file", "not a file", "larger than 8 MiB"), or "" if it
/// will.
std::string unreadable(const std::filesystem::path& path);

/// A node of a YAML file that knows where it stands, so that everything it refuses is refused with
/// file, line, column and key. Scalars are taken as text and parsed here: 010 is ten, and no word
/// turns into a boolean.
class Yaml {
 public:
  /// Reads a whole file. Throws InputError if it cannot be read, is larger than 8 MiB, or is not
  /// one YAML mapping. `example`: a key with a value as such a file has, which the error shows; "":
  /// those of a scenario.
  static Yaml load(const std::filesystem::path& file, std::string_view example = "");
  /// A lone scalar that comes from no file.
  static Yaml of_text(const std::string& text) { return Yaml(YAML::Node(text), "", ""); }
  /// A lone scalar that a user gave, of whom errors say what was written.
  static Yaml of_setting(const Setting& setting);
  /// A mapping without keys that comes from no file. What is applied to it may name files that lie
  /// beside `neighbour`.
  static Yaml of_nothing(const std::filesystem::path& neighbour = {});
  /// Replaces or adds keys by dotted path. Only that path changes: where an anchor and its aliases
  /// share a mapping, the others keep the old value. Throws InputError if a path runs through
  /// something that is no mapping.
  ///
  /// `keys` describes this mapping. With it a bare value on the way becomes the mapping that it is
  /// short for: setting inter_node.nics changes `inter_node: ib-ndr` into `inter_node: {base:
  /// ib-ndr, nics: ...}`. And a path is looked for in the current folder first, then in the folder
  /// of this file. Without it a bare value on the way is refused, and paths are of this file.
  void apply(const std::vector<Setting>& overrides, const MapDescription* keys = nullptr);
  /// Adds or replaces the value at a path, as `apply` does; nobody gave it as a setting.
  void put(const std::vector<std::string>& path, const Yaml& value, const MapDescription& keys);
  /// This value of `key` as a change of `below`, what the key has in an entry that this one is
  /// based on: a mapping without a `base` of its own keeps what it does not say from there. Any
  /// other value stands by itself.
  Yaml over(const Yaml& below, const KeyDescription& key) const;
  /// Makes a scalar that stands at `key` of this mapping a mapping: `{inner: scalar}`. Each keeps
  /// its place in the file.
  void wrap(const std::string& key, const std::string& inner);
  /// Takes a key out, by its path through mappings. Nothing happens where there is none.
  void remove(const std::vector<std::string>& path);

  [[noreturn]] void fail(std::string_view problem) const;
  /// "file:line:column".
  std::string place() const;

  bool is_scalar() const { return node_.IsScalar(); }
  bool is_map() const { return node_.IsMap(); }
  bool is_list() const { return node_.IsSequence(); }
  std::size_t size() const { return node_.size(); }  ///< of a list or a mapping

  /// Did a setting, such as `--set`, give this value, or one in it?
  bool is_setting() const { return setting() != nullptr; }

  std::string text(std::string_view expected) const;
  const std::string& scalar() const { return node_.Scalar(); }  ///< "" if it is none
  /// On one line, as a value is written within braces: "{nodes: 2, device: h100-sxm}".
  std::string flow() const;
  bool boolean() const;
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  double number(double least, double most) const;
  Duration duration() const;  ///< positive
  Duration duration_or_zero() const;
  Bytes bytes() const;           ///< positive
  Bytes bytes_or_count() const;  ///< positive; a bare whole number too, where the key says bytes
  Bandwidth bandwidth() const;   ///< positive
  FlopRate flop_rate() const;    ///< positive
  std::vector<Yaml> list(std::string_view expected) const;

  /// One of a closed set, by name, in any case; the error lists them and the nearest one.
  template <typename T, typename Names>
  T one_of(const Names& values) const {
    std::vector<std::string> names;
    const std::string given = text("a name");
    for (const T value : values) names.emplace_back(name_of(value));
    const auto position = position_of(given, names);
    if (!position) fail_unknown(given, names);
    return values[*position];
  }
  /// Is it this word, in any case?
  bool is_word(std::string_view word) const;
  /// "expected a size with its unit, got "50mib"; did you mean "50 MiB"?"
  [[noreturn]] void fail_quantity(std::string_view expected, const std::string& given,
                                  Quantity quantity) const;
  [[noreturn]] void fail_unknown(const std::string& given,
                                 const std::vector<std::string>& known) const;

  /// The folder relative paths start from.
  std::filesystem::path folder() const { return std::filesystem::path(file_).parent_path(); }
  const std::string& file() const { return file_; }

 private:
  friend class YamlMap;
  Yaml(const YAML::Node& node, std::string file, std::string key)
      : node_(node), file_(std::move(file)), key_(std::move(key)) {}

  /// What `apply` has done; shared by the whole tree.
  struct Changes {
    std::vector<Setting> overrides;  ///< whose keys have no place in the file
    /// Mappings copied for a change, each with the place of the original.
    std::vector<std::pair<YAML::Node, YAML::Mark>> copies;
    /// Nodes that stand in another file than the mapping that holds them here.
    std::vector<std::pair<YAML::Node, std::string>> origins;
  };
  /// `map` with `value` at the end of the path `steps[at...]`. The mappings on the path are copied.
  /// `keys` describes `map`; null: nobody knows its keys.
  YAML::Node changed(const YAML::Node& map, const std::vector<std::string>& steps, std::size_t at,
                     const YAML::Node& value, Changes& changes, const MapDescription* keys) const;
  /// The mapping that a bare value of `key` is short for; none if it is for none.
  static std::optional<YAML::Node> long_form(const YAML::Node& bare, const KeyDescription& key);
  /// `map` with what `below` says of other keys, mappings within them likewise.
  YAML::Node joined(const YAML::Node& map, const Yaml& below, const MapDescription& keys,
                    Changes& changes) const;
  static std::string origin_of(const YAML::Node& node, const Changes& changes,
                               const std::string& otherwise);
  /// `map` without what is at the end of that path, the mappings on the path copied.
  static YAML::Node without(const YAML::Node& map, const std::vector<std::string>& steps,
                            std::size_t at, Changes& changes);
  /// The last setting that gave this value, or one in it; null: none did.
  const Setting* setting() const;
  /// Where a node stands in its file; null if a change made it.
  static YAML::Mark mark_of(const YAML::Node& node, const Changes& changes);
  YAML::Mark mark() const { return nothing_.value_or(mark_of(node_, *changes_)); }

  YAML::Node node_;
  std::string file_;
  std::string key_;                    ///< dotted path from the root, "" for it
  std::optional<YAML::Mark> nothing_;  ///< of the key whose value is nothing, and stands nowhere
  std::shared_ptr<const Changes> changes_ = std::make_shared<Changes>();
};

/// The keys of a mapping, each there once. What they may be a MapDescription says; see map.hpp.
class YamlMap {
 public:
  /// Throws InputError if `node` is no mapping or repeats a key.
  explicit YamlMap(const Yaml& node);

  /// The value of a key, if it is there.
  std::optional<Yaml> find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key).has_value(); }
  /// The value of a key. Throws InputError if it is missing.
  Yaml at(std::string_view key) const;

  // Each throws InputError where the mapping is not as `description` says. Of several `layers` the
  // last one is the entry, and those before are what it is based on.
  void check_together(const MapDescription& description) const;  ///< what excludes each other
  static void check_there(const std::vector<YamlMap>& layers, std::string_view key,
                          const MapDescription& description);
  /// Refuses "nodes:2", which to YAML is a key of that name and no value: in braces a colon needs a
  /// blank.
  void refuse_joined(const MapDescription& description) const;
  /// Refuses a key that is none here and may be `key` misspelt; call it where `key` is missing.
  void refuse_slip(std::string_view key, const MapDescription& description) const;
  static void check_needs(const std::vector<YamlMap>& layers, const MapDescription& description);
  void refuse_unknown(const MapDescription& description) const;
  /// Refuses a key that is none here, and one of a mapping right below.
  void refuse_misplaced(const MapDescription& description) const;

  const Yaml& node() const { return node_; }
  /// Every key with its value, in file order (for mappings with keys of the user's choice).
  const std::vector<std::pair<std::string, Yaml>>& entries() const { return entries_; }

 private:
  Yaml child(const YAML::Node& key, const YAML::Node& value) const;
  Yaml place_of_key(const std::string& key, const Yaml& value) const;

  Yaml node_;
  std::vector<std::pair<std::string, Yaml>> entries_;
};

}  // namespace ddpsim
