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

#include "scenarios/reader/format.hpp"
#include "scenarios/reader/value.hpp"
#include "scenarios/reader/yaml.hpp"

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
  Map(std::string name, std::string meaning)
      : description_{.name = std::move(name), .meaning = std::move(meaning)} {}

  /// A key that is bound to a field: a pointer to a member, or a function from a T to a reference
  /// to the field. The field may be an optional. Where the key is missing it keeps its initial
  /// value.
  template <typename V, typename Field>
  Map& key(std::string name, const Value<V>& value, Field field, About about) {
    if constexpr (std::is_member_pointer_v<Field>) {
      return key(
          std::move(name), value, [field](auto& t) -> auto& { return t.*field; }, std::move(about));
    } else {
      const T unset{};
      const std::string initial = value::written(value, value::as_optional<V>(field(unset)));
      if (!about.required && about.unset.empty() && about.otherwise.empty()) about.unset = initial;
      Handler handler;
      handler.read = [value, field](T& t, const Yaml& given) {
        using Held = std::remove_cvref_t<decltype(field(t))>;
        field(t) = static_cast<Held>(value.read(given));
      };
      const bool always = about.required || about.always_written;
      handler.write = [=, remark = about.remark](YAML::Emitter& out, const T& t) {
        const std::optional<V> held = value::as_optional<V>(field(t));
        if (!held || !value.write || (!always && value::written(value, held) == initial)) return;
        out << YAML::Key << name << YAML::Value;
        const bool above = value::over_lines(value.type);
        if (!remark.empty() && above) out << YAML::Comment(remark);
        value.write(out, *held);
        if (!remark.empty() && !above) out << YAML::Comment(remark);
      };
      return add({std::move(name), value.type, std::move(about)}, std::move(handler));
    }
  }

  /// A key whose value goes to `take(T&, V)`.
  template <typename V, typename Take>
  requires std::invocable<Take, T&, V> Map& key_taken(std::string name, const Value<V>& value,
                                                      Take take, About about) {
    Handler handler;
    handler.read = [value, take](T& t, const Yaml& given) { take(t, value.read(given)); };
    return add({std::move(name), value.type, std::move(about)}, std::move(handler));
  }
  /// Reads with `take`, as above, and writes from `field`.
  template <typename V, typename Take, typename Field>
  requires std::invocable<Take, T&, V> Map& key_taken(std::string name, const Value<V>& value,
                                                      Take take, Field field, About about) {
    key(std::move(name), value, field, std::move(about));
    handlers_.back().read = [value, take](T& t, const Yaml& given) { take(t, value.read(given)); };
    return *this;
  }

  /// A key of `type` whose place goes to `read(T&, const Yaml&)`: what is allowed depends on T.
  template <typename ReadValue>
  requires std::invocable<ReadValue, T&, const Yaml&> Map& key_read(std::string name, Type type,
                                                                    ReadValue read_value,
                                                                    About about) {
    return add({std::move(name), std::move(type), std::move(about)},
               {.read = std::move(read_value)});
  }

  /// A key whose value is always this word: it says what a file is.
  Map& key_constant(std::string name, const std::string& word, About about) {
    const auto constant = value::constant(word);
    Handler handler;
    handler.read = [constant](T&, const Yaml& given) { constant.read(given); };
    handler.write = [constant, name](YAML::Emitter& out, const T&) {
      out << YAML::Key << name << YAML::Value;
      constant.write(out, {});
    };
    return add({std::move(name), constant.type, std::move(about)}, std::move(handler));
  }

  /// A key that only writing looks at.
  Map& key_written(std::string name, Type type, std::function<void(YAML::Emitter&, const T&)> write,
                   About about) {
    return add({std::move(name), std::move(type), std::move(about)},
               {.read = [](T&, const Yaml&) {}, .write = std::move(write)});
  }
  /// A text that is nothing of T: `said` of `write` has it.
  Map& key_said(std::string name, const Value<std::string>& value, About about) {
    Handler handler;
    handler.read = [value](T&, const Yaml& given) { value.read(given); };
    return add({std::move(name), value.type, std::move(about)}, std::move(handler));
  }

  /// At least one of `keys` is there; otherwise `problem`, or that the first is missing.
  Map& needs(const std::vector<std::string>& keys, std::string problem = "") {
    Need& need = description_.needs.emplace_back();
    need.problem = std::move(problem);
    for (const std::string& key : keys) need.any_of.push_back({.key = key});
    return *this;
  }
  /// At least one of these is there. The reader of the map checks it, since it depends on values.
  Map& needs_also(std::vector<Presence> any_of) {
    description_.needs.push_back({.any_of = std::move(any_of), .told_only = true});
    return *this;
  }
  /// `key` does not go with any of `others`; otherwise `problem`, at the key.
  Map& excludes(std::string key, std::vector<std::string> others, std::string problem) {
    description_.exclusions.push_back({std::move(key), std::move(others), std::move(problem)});
    return *this;
  }
  /// Exactly one of the keys is there; otherwise `problem`.
  Map& exactly_one(std::string problem) {
    description_.single = std::move(problem);
    return *this;
  }
  /// Runs once all keys have been read.
  Map& check(std::function<void(T&, const YamlMap&)> of_all) {
    checks_.push_back(std::move(of_all));
    return *this;
  }

  const MapDescription& description() const { return description_; }

  T read(const Yaml& given) const {
    T t{};
    read(given, t);
    return t;
  }
  void read(const Yaml& given, T& into) const { read(std::vector{given}, into); }
  /// Reads what an entry is based on, then the entry, whose keys go before: of mappings in both it
  /// changes the keys that it has (Yaml::over). What is needed may stand in any of them. Throws
  /// InputError.
  void read(const std::vector<Yaml>& layers, T& into) const {
    std::vector<YamlMap> maps;
    for (const Yaml& layer : layers) maps.emplace_back(layer).check_together(description_);
    std::vector<std::optional<Yaml>> so_far(handlers_.size());  // the value of each key
    for (const YamlMap& map : maps)
      for (std::size_t k = 0; k < handlers_.size(); ++k) {
        const KeyDescription& key = description_.keys[k];
        if (const auto value = map.find(key.name)) {
          // A Yaml that is assigned to would write into the file's nodes: emplace makes another.
          const Yaml whole = so_far[k] ? value->over(*so_far[k], key) : *value;
          handlers_[k].read(into, so_far[k].emplace(whole));
        } else if (key.about.required && &map == &maps.back()) {
          YamlMap::check_there(maps, key.name, description_);
        }
      }
    YamlMap::check_needs(maps, description_);
    for (const auto& of_all : checks_) of_all(into, maps.back());
    for (const YamlMap& map : maps) map.refuse_unknown(description_);
  }

  /// The keys with their values, those left out that hold their initial value; within a map. `said`
  /// are texts of keys that are nothing of T.
  void write(YAML::Emitter& out, const T& t,
             const std::map<std::string, std::string>& said = {}) const {
    for (std::size_t k = 0; k < handlers_.size(); ++k) {
      const auto text = said.find(description_.keys[k].name);
      if (text != said.end())
        out << YAML::Key << text->first << YAML::Value << text->second;
      else if (handlers_[k].write)
        handlers_[k].write(out, t);
    }
  }

 private:
  struct Handler {
    std::function<void(T&, const Yaml&)> read;
    std::function<void(YAML::Emitter&, const T&)> write{};
  };
  Map& add(KeyDescription key, Handler handler) {
    description_.keys.push_back(std::move(key));
    handlers_.push_back(std::move(handler));
    return *this;
  }

  MapDescription description_;
  std::vector<Handler> handlers_;  ///< of description_.keys
  std::vector<std::function<void(T&, const YamlMap&)>> checks_;
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
