#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "scenarios/reader/format/format.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

/// What every Map<T> (map.hpp) does alike. It knows the address of a T and nothing else of it, so
/// that it is compiled once and not for each T.
class MapCore {
 public:
  using Read = std::function<void(void* t, const Yaml& given)>;
  /// Writes the key and its value, where there is one to write.
  using Write = std::function<void(YAML::Emitter& out, const void* t)>;
  /// Does a T have a value that can be written? If so, it is written to `out`, where that is not
  /// null.
  using Put = std::function<bool(YAML::Emitter* out, const void* t)>;
  using Check = std::function<void(void* t, const YamlMap& map)>;

  MapCore(Told name, Told meaning) : description_{.name = std::string(name), .meaning = meaning} {}

  /// A key that is read by `read` and written by `write`, or not at all.
  void add(KeyDescription key, Read read, Write write = {});
  /// A key with a field of T. `initial` is a T as it is before anything is read: a key whose value
  /// is written as that one's is left out.
  void add_field(KeyDescription key, Read read, Put put, const void* initial);
  /// The key that was added last is read by `read`.
  void read_last_by(Read read) { handlers_.back().read = std::move(read); }
  /// A key whose value is always this word.
  void add_constant(Told name, const std::string& word, About about);

  void needs(const std::vector<std::string>& keys, Told problem);
  void check(Check of_all) { checks_.push_back(std::move(of_all)); }

  MapDescription& description() { return description_; }
  const MapDescription& description() const { return description_; }

  void read(const std::vector<Yaml>& layers, void* into) const;
  void write(YAML::Emitter& out, const void* t,
             const std::map<std::string, std::string>& said) const;

 private:
  struct Handler {
    Read read;
    Write write{};
    Put put{};              ///< of a key with a field, in place of `write`
    std::string initial{};  ///< as it is written
  };
  static void write_field(YAML::Emitter& out, const KeyDescription& key, const Handler& handler,
                          const void* t);

  MapDescription description_;
  std::vector<Handler> handlers_;  ///< of description_.keys
  std::vector<Check> checks_;
};

}  // namespace ddpsim
