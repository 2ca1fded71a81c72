#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "model/base/price.hpp"
#include "scenarios/reader/format/format.hpp"
#include "scenarios/reader/format/yaml.hpp"

namespace ddpsim {

/// What a value of a file looks like, and how it becomes a V and a V becomes it.
template <typename V>
struct Value {
  Type type;
  std::function<V(const Yaml&)> read;
  std::function<void(YAML::Emitter&, const V&)> write;
};

namespace value {

/// `expected` is what the error calls a text that is missing.
Value<std::string> text(std::string expected = "a text");
Value<bool> boolean();
Value<double> number(double least, double most);
/// A part of something: "1 %", or 0.01.
Value<double> share(double least, double most);
/// How many times as long: "1.3x", or 1.3.
Value<double> times(double least, double most);
Value<Duration> time();
Value<Duration> time_or_zero();
Value<Bytes> size();
Value<Bytes> size_or_count();  ///< where the key says bytes: a whole number too
Value<Bandwidth> bandwidth();
Value<FlopRate> flop_rate();
Value<Price> price();
/// This word, which says what a file is. Becomes nothing.
Value<std::monostate> constant(std::string word);

Form integer_form(std::int64_t lowest, std::int64_t highest);
template <typename N = int>
Value<N> whole(std::int64_t lowest, std::int64_t highest) {
  return {{integer_form(lowest, highest)},
          [=](const Yaml& given) { return static_cast<N>(given.integer(lowest, highest)); },
          [](YAML::Emitter& out, const N& number) { out << std::to_string(number); }};
}

/// One of a closed set, by its name_of. `meanings` are those of `all`, in order, or none.
template <typename Names>
auto one_of(const Names& all, const std::vector<std::string>& meanings = {}) {
  using V = typename Names::value_type;
  Form form{.kind = Form::Kind::choice};
  for (std::size_t i = 0; i < all.size(); ++i)
    form.choices.push_back({std::string(name_of(all[i])), i < meanings.size() ? meanings[i] : ""});
  return Value<V>{{form},
                  [&all](const Yaml& given) { return given.one_of<V>(all); },
                  [](YAML::Emitter& out, const V& v) { out << std::string(name_of(v)); }};
}

/// Is a value of the type written over several lines? Lists of mappings are, each on a line of its
/// own.
bool over_lines(const Type& type);

/// A list. `expected` is the error for anything else, `empty` the one for a list of nothing ("": it
/// may be).
template <typename V>
Value<std::vector<V>> list_of(const Value<V>& item, const std::string& expected,
                              const std::string& empty = "") {
  Form form{.kind = Form::Kind::list, .items = item.type, .fewest_items = empty.empty() ? 0U : 1U};
  return {{form},
          [=, read = item.read](const Yaml& given) {
            std::vector<V> values;
            for (const Yaml& each : given.list(expected)) values.push_back(read(each));
            if (values.empty() && !empty.empty()) given.fail(empty);
            return values;
          },
          [write = item.write, lines = over_lines({form})](YAML::Emitter& out,
                                                           const std::vector<V>& values) {
            if (!lines) out << YAML::Flow;
            out << YAML::BeginSeq;
            for (const V& each : values) write(out, each);
            out << YAML::EndSeq;
          }};
}

// Forms of values that several readers put together by themselves.
Form word(std::string name, std::string meaning = "");
Form list(Type items, std::size_t fewest = 0, std::size_t most = 0);
Form map(std::function<const MapDescription&()> description);
inline Form form(Form::Kind kind) {
  return {.kind = kind};
}
/// All of them, in order.
Type either(std::vector<Type> types);

/// What a field holds, which may be optional, as a V.
template <typename V, typename Field>
std::optional<V> as_optional(const Field& field) {
  return static_cast<V>(field);
}
template <typename V, typename Field>
std::optional<V> as_optional(const std::optional<Field>& field) {
  return field ? std::optional<V>(static_cast<V>(*field)) : std::nullopt;
}

}  // namespace value
}  // namespace ddpsim
