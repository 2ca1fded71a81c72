#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "scenarios/reader/format/format.hpp"
#include "scenarios/reader/format/map_core.hpp"
#include "scenarios/reader/format/value.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

/// A mapping of a file and the T that it becomes: the description of its keys, and how the value of
/// each gets into a T and out of it again. Keys are read in the order in which they are added here.
///
///     static const auto map =
///         Map<Join>("join", "How ranks that run out of inputs are treated.")
///             .key("joined_ranks", value::whole(0, 1 << 20), &Join::joined_ranks,
///                  {.meaning = "How many ranks, the last ones, have run out of inputs."});
///     const Join join = map.read(yaml);
template <typename T>
class Map {
 public:
  Map(Told name, Told meaning) : core_(name, meaning) {}

  /// A key that is bound to a field: a pointer to a member, or a function from a T to a reference
  /// to the field. The field may be an optional. Where the key is missing it keeps its initial
  /// value.
  template <typename V, typename Field>
  Map& key(Told name, const Value<V>& value, Field field, About about) {
    if constexpr (std::is_member_pointer_v<Field>) {
      return key(
          name, value, [field](auto& t) -> auto& { return t.*field; }, std::move(about));
    } else {
      const T initial{};
      core_.add_field(
          {std::string(name), value.type, std::move(about)},
          [read = value.read, field](void* t, const Yaml& given) {
            auto& held = field(*static_cast<T*>(t));
            held = static_cast<std::remove_cvref_t<decltype(held)>>(read(given));
          },
          [write = value.write, field](YAML::Emitter* out, const void* t) {
            const std::optional<V> held = value::as_optional<V>(field(*static_cast<const T*>(t)));
            if (!held || !write) return false;
            if (out != nullptr) write(*out, *held);
            return true;
          },
          &initial);
      return *this;
    }
  }

  /// A key whose value goes to `take(T&, V)`.
  template <typename V, typename Take>
  requires std::invocable<Take, T&, V> Map& key_taken(Told name, const Value<V>& value, Take take,
                                                      About about) {
    core_.add({std::string(name), value.type, std::move(about)}, taking<V>(value, take));
    return *this;
  }
  /// Reads with `take`, as above, and writes from `field`.
  template <typename V, typename Take, typename Field>
  requires std::invocable<Take, T&, V> Map& key_taken(Told name, const Value<V>& value, Take take,
                                                      Field field, About about) {
    key(name, value, field, std::move(about));
    core_.read_last_by(taking<V>(value, take));
    return *this;
  }

  /// A key of `type` whose place goes to `read(T&, const Yaml&)`: what is allowed depends on T.
  template <typename ReadValue>
  requires std::invocable<ReadValue, T&, const Yaml&> Map& key_read(Told name, Type type,
                                                                    ReadValue read_value,
                                                                    About about) {
    core_.add({std::string(name), std::move(type), std::move(about)},
              [read_value](void* t, const Yaml& given) { read_value(*static_cast<T*>(t), given); });
    return *this;
  }

  /// A key whose value is always this word: it says what a file is.
  Map& key_constant(Told name, const std::string& word, About about) {
    core_.add_constant(name, word, std::move(about));
    return *this;
  }

  /// A key that only writing looks at.
  Map& key_written(Told name, Type type, std::function<void(YAML::Emitter&, const T&)> write,
                   About about) {
    core_.add(
        {std::string(name), std::move(type), std::move(about)}, [](void*, const Yaml&) {},
        [write = std::move(write)](YAML::Emitter& out, const void* t) {
          write(out, *static_cast<const T*>(t));
        });
    return *this;
  }
  /// A text that is nothing of T: `said` of `write` has it.
  Map& key_said(Told name, const Value<std::string>& value, About about) {
    core_.add({std::string(name), value.type, std::move(about)},
              [read = value.read](void*, const Yaml& given) { read(given); });
    return *this;
  }

  /// At least one of `keys` is there; otherwise `problem`, or that the first is missing.
  Map& needs(const std::vector<std::string>& keys, Told problem = "") {
    core_.needs(keys, problem);
    return *this;
  }
  /// At least one of these is there. The reader of the map checks it, since it depends on values.
  Map& needs_also(std::vector<Presence> any_of) {
    core_.description().needs.push_back({.any_of = std::move(any_of), .told_only = true});
    return *this;
  }
  /// `key` does not go with any of `others`; otherwise `problem`, at the key.
  Map& excludes(std::string key, std::vector<std::string> others, Told problem) {
    core_.description().exclusions.push_back({std::move(key), std::move(others), problem});
    return *this;
  }
  /// Exactly one of the keys is there; otherwise `problem`.
  Map& exactly_one(Told problem) {
    core_.description().single = problem;
    return *this;
  }
  /// Runs once all keys have been read.
  Map& check(std::function<void(T&, const YamlMap&)> of_all) {
    core_.check([of_all = std::move(of_all)](void* t, const YamlMap& map) {
      of_all(*static_cast<T*>(t), map);
    });
    return *this;
  }

  const MapDescription& description() const { return core_.description(); }

  T read(const Yaml& given) const {
    T t{};
    read(given, t);
    return t;
  }
  void read(const Yaml& given, T& into) const { core_.read({given}, &into); }
  /// Reads what an entry is based on, then the entry, whose keys go before: of mappings in both it
  /// changes the keys that it has (Yaml::over). What is needed may stand in any of them. Throws
  /// InputError.
  void read(const std::vector<Yaml>& layers, T& into) const { core_.read(layers, &into); }

  /// The keys with their values, those left out that hold their initial value; within a map. `said`
  /// are texts of keys that are nothing of T.
  void write(YAML::Emitter& out, const T& t,
             const std::map<std::string, std::string>& said = {}) const {
    core_.write(out, &t, said);
  }

 private:
  template <typename V, typename Take>
  static MapCore::Read taking(const Value<V>& value, Take take) {
    return [read = value.read, take](void* t, const Yaml& given) {
      take(*static_cast<T*>(t), read(given));
    };
  }

  MapCore core_;
};

namespace value {

/// A mapping, written on one line.
template <typename T>
Value<T> mapping(const Map<T>& (*map)()) {
  Form form{.kind = Form::Kind::map};
  form.map = [map]() -> const MapDescription& { return map().description(); };
  return {{form},
          [map](const Yaml& given) { return map().read(given); },
          [map](YAML::Emitter& out, const T& t) {
            out << YAML::Flow << YAML::BeginMap;
            map().write(out, t);
            out << YAML::EndMap;
          }};
}

}  // namespace value

/// A whole file: `remarks` (lines that begin with '#'), then the mapping.
template <typename T>
std::string document(const Map<T>& map, const T& t, const std::string& remarks,
                     const std::map<std::string, std::string>& said = {}) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  map.write(out, t, said);
  out << YAML::EndMap;
  return remarks + out.c_str() + "\n";
}

}  // namespace ddpsim
