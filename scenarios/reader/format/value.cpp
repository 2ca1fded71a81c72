#include "scenarios/reader/format/value.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/reader/text/quantity_text.hpp"
#include "scenarios/reader/text/yaml_text.hpp"

namespace ddpsim::value {
namespace {

/// A quantity is written as the text that reads back to it.
template <typename V, typename Write>
Value<V> quantity(Form form, V (Yaml::*read)() const, Write write) {
  return {{std::move(form)},
          [read](const Yaml& given) { return (given.*read)(); },
          [write](YAML::Emitter& out, const V& held) { out << write(held); }};
}

constexpr auto exact_text = [](const auto& held) { return exact(held); };

}  // namespace

Value<std::string> text(std::string expected) {
  return {{{.kind = Form::Kind::text}},
          [expected = std::move(expected)](const Yaml& given) { return given.text(expected); },
          [](YAML::Emitter& out, const std::string& held) { write_text(out, held); }};
}

Value<bool> boolean() {
  return quantity<bool>({.kind = Form::Kind::boolean}, &Yaml::boolean,
                        [](bool held) { return std::string(held ? "true" : "false"); });
}

Value<double> number(double least, double most) {
  return {{{.kind = Form::Kind::number, .least = least, .most = most}},
          [=](const Yaml& given) { return given.number(least, most); },
          [](YAML::Emitter& out, const double& held) { out << fmt::format("{}", held); }};
}

Value<double> share(double least, double most) {
  return {
      {{.kind = Form::Kind::number, .least = least, .most = most}, {.kind = Form::Kind::percent}},
      [=](const Yaml& given) {
        std::string text = given.text("a share, such as 1%");
        const auto last = text.find_last_not_of(' ');
        if (last == std::string::npos || text[last] != '%') {
          const auto plain = parse_number(text);
          if (plain && *plain > most && *plain <= 100 * most)
            given.fail(fmt::format("expected a share from {} to {}, got {}: write \"{} %\" or {:g}",
                                   least, most, *plain, *plain, *plain / 100));
          return given.number(least, most);
        }
        text.erase(last);
        text.erase(text.find_last_not_of(' ') + 1);
        const auto percent = parse_number(text);
        if (!percent || !(*percent >= 100 * least && *percent <= 100 * most))
          given.fail(fmt::format("expected a share from {:g} % to {:g} %, got \"{} %\"",
                                 100 * least, 100 * most, text.substr(0, 40)));
        return *percent / 100;
      },
      [](YAML::Emitter& out, const double& held) { out << fmt::format("{}", held); }};
}

Value<double> times(double least, double most) {
  return {{{.kind = Form::Kind::number, .least = least, .most = most},
           {.kind = Form::Kind::times, .least = least, .most = most}},
          [=](const Yaml& given) {
            std::string text = given.text("how many times as long, such as 1.3x");
            if (!text.ends_with('x')) return given.number(least, most);
            text.pop_back();
            text.erase(text.find_last_not_of(' ') + 1);
            const auto factor = parse_number(text);
            if (!factor || !(*factor >= least && *factor <= most))
              given.fail(fmt::format("expected a factor from {:g}x to {:g}x, got \"{}x\"", least,
                                     most, text.substr(0, 40)));
            return *factor;
          },
          [](YAML::Emitter& out, const double& held) { out << fmt::format("{}", held); }};
}

Value<Duration> time() {
  return quantity<Duration>({.kind = Form::Kind::time}, &Yaml::duration, exact_text);
}
Value<Duration> time_or_zero() {
  return quantity<Duration>({.kind = Form::Kind::time, .zero = true}, &Yaml::duration_or_zero,
                            exact_text);
}
Value<Bytes> size() {
  return quantity<Bytes>({.kind = Form::Kind::size}, &Yaml::bytes, exact_text);
}
Value<Bytes> size_or_count() {
  Value<Bytes> either = size();
  either.type.insert(either.type.begin(),
                     integer_form(1, std::numeric_limits<std::int64_t>::max()));
  either.read = [](const Yaml& given) { return given.bytes_or_count(); };
  either.write = [](YAML::Emitter& out, const Bytes& held) { out << std::to_string(held.count); };
  return either;
}
Value<Bandwidth> bandwidth() {
  return quantity<Bandwidth>({.kind = Form::Kind::bandwidth}, &Yaml::bandwidth, exact_text);
}
Value<FlopRate> flop_rate() {
  return quantity<FlopRate>({.kind = Form::Kind::flop_rate}, &Yaml::flop_rate, exact_text);
}

Value<Price> price() {
  return {{{.kind = Form::Kind::price}},
          [](const Yaml& given) {
            constexpr std::string_view expected = "a price per hour, such as \"2.5 USD/h\"";
            const std::string text = given.text(expected);
            const auto price = parse_price(text);
            if (!price || price->per_hour <= 0)
              given.fail(fmt::format("expected {} and above zero, got \"{}\"", expected,
                                     text.substr(0, 40)));
            return *price;
          },
          [](YAML::Emitter& out, const Price& held) {
            out << fmt::format("{} {}/h", held.per_hour, held.currency);
          }};
}

Value<std::monostate> constant(std::string word) {
  Form form{.kind = Form::Kind::constant, .choices = {{word, ""}}};
  return {{form},
          [word](const Yaml& given) {
            if (given.text(word) != word) given.fail("expected " + word);
            return std::monostate{};
          },
          [word](YAML::Emitter& out, const std::monostate&) { out << word; }};
}

bool over_lines(const Type& type) {
  return std::any_of(type.begin(), type.end(), [](const Form& form) {
    return form.kind == Form::Kind::list && !form.items.empty() &&
           form.items.front().kind == Form::Kind::map;
  });
}

Form integer_form(std::int64_t lowest, std::int64_t highest) {
  return {.kind = Form::Kind::integer, .lowest = lowest, .highest = highest};
}

Form word(std::string name, std::string meaning) {
  return {.kind = Form::Kind::choice, .choices = {{std::move(name), std::move(meaning)}}};
}

Form list(Type items, std::size_t fewest, std::size_t most) {
  return {.kind = Form::Kind::list,
          .items = std::move(items),
          .fewest_items = fewest,
          .most_items = most};
}

Form map(std::function<const MapDescription&()> description) {
  return {.kind = Form::Kind::map, .map = std::move(description)};
}

Type either(std::vector<Type> types) {
  Type all;
  for (Type& type : types) all.insert(all.end(), type.begin(), type.end());
  return all;
}

}  // namespace ddpsim::value
