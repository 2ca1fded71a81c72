#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "model/base/quantity.hpp"
#include "scenarios/reader/input_error.hpp"
#include "scenarios/reader/nearest.hpp"

namespace ddpsim {

/// Why `path` will not be read ("no such file", "not a file", "larger than 8 MiB"), or "" if it
/// will.
std::string unreadable(const std::filesystem::path& path);

/// "--set cluster.ranks_per_node=8": a key of a scenario, given elsewhere than in its file.
using Override = std::pair<std::string, std::string>;

/// A node of a YAML file that knows where it stands, so that everything it refuses is refused with
/// file, line, column and key. Scalars are taken as text and parsed here: 010 is ten, and no word
/// turns into a boolean.
class Yaml {
 public:
  /// Reads a whole file. Throws InputError if it cannot be read, is larger than 8 MiB, or is not
  /// one YAML mapping.
  static Yaml load(const std::filesystem::path& file);
  /// A lone scalar that comes from no file.
  static Yaml of_text(const std::string& text) { return Yaml(YAML::Node(text), "", ""); }
  /// A mapping without keys that comes from no file.
  static Yaml of_nothing() { return Yaml(YAML::Node(YAML::NodeType::Map), "", ""); }
  /// Replaces or adds keys by dotted path. Throws InputError if a path runs through something that
  /// is no mapping.
  void apply(const std::vector<Override>& overrides);

  [[noreturn]] void fail(std::string_view problem) const;
  /// "file:line:column".
  std::string place() const;

  bool is_scalar() const { return node_.IsScalar(); }
  bool is_map() const { return node_.IsMap(); }
  bool is_list() const { return node_.IsSequence(); }

  std::string text(std::string_view expected) const;
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

  /// One of a closed set, by name; the error lists them and the nearest one.
  template <typename T, typename Names>
  T one_of(const Names& values) const {
    std::vector<std::string> names;
    const std::string given = text("a name");
    for (const T value : values) {
      if (name_of(value) == given) return value;
      names.emplace_back(name_of(value));
    }
    fail_unknown(given, names);
  }
  [[noreturn]] void fail_unknown(const std::string& given,
                                 const std::vector<std::string>& known) const;

  /// The folder relative paths start from.
  std::filesystem::path folder() const { return std::filesystem::path(file_).parent_path(); }
  const std::string& file() const { return file_; }

 private:
  friend class YamlMap;
  Yaml(YAML::Node node, std::string file, std::string key)
      : node_(std::move(node)), file_(std::move(file)), key_(std::move(key)) {}

  YAML::Node node_;
  std::string file_;
  std::string key_;                  ///< dotted path from the root, "" for it
  std::vector<Override> overrides_;  ///< whose keys have no place in the file
};

/// The keys of a mapping, taken one by one; what nobody asked for is an error.
class YamlMap {
 public:
  /// Throws InputError if `node` is no mapping or repeats a key.
  explicit YamlMap(const Yaml& node);

  std::optional<Yaml> optional(const std::string& key);
  Yaml required(const std::string& key);
  /// Call when all known keys have been asked for. Throws InputError naming an unknown key and the
  /// nearest known.
  void finish() const;

  const Yaml& node() const { return node_; }
  /// Every key with its value, in file order (for mappings with keys of the user's choice).
  std::vector<std::pair<std::string, Yaml>> entries();

 private:
  Yaml child(const std::string& key, const YAML::Node& value) const;

  Yaml node_;
  std::vector<std::pair<std::string, Yaml>> entries_;
  std::vector<std::string> asked_;
};

}  // namespace ddpsim
