#include "tools/study/grid.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/reader/scenario/scenario_settings.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/quantity_text.hpp"

namespace ddpsim {
namespace {

/// `written`: the flag with its values, as its user wrote them.
[[noreturn]] void refuse(std::string_view written, std::string_view problem) {
  constexpr std::size_t most = 107;
  throw InputError(fmt::format("{}{}: {}", written.substr(0, most),
                               written.size() > most ? "..." : "", problem));
}

Setting varied(const Axis& axis, const std::string& value) {
  return {axis.key, value, fmt::format("--vary {}={}", shown(axis.key), shown(value))};
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view white = " \t\n\r\v\f";  // a long list may go over several lines
  const std::size_t first = text.find_first_not_of(white);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(white) + 1 - first);
}

/// At the commas that no bracket or quote holds.
std::vector<std::string_view> split(std::string_view given, std::string_view text) {
  std::vector<std::string_view> parts;
  std::string open;  // the closing brackets still to come
  char quote = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\' && quote == '"')
        ++i;
      else if (c == quote)
        quote = 0;
    } else if ((c == '"' || c == '\'') &&
               (!open.empty() || trimmed(text.substr(begin, i - begin)).empty())) {
      quote = c;
    } else if (c == '[' || c == '{') {
      open += c == '[' ? ']' : '}';
    } else if (c == ']' || c == '}') {
      if (open.empty() || open.back() != c) refuse(given, fmt::format("\"{}\" closes nothing", c));
      open.pop_back();
    } else if (c == ',' && open.empty()) {
      parts.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (quote != 0 || !open.empty())
    refuse(given, fmt::format("\"{}\" is missing", quote != 0 ? quote : open.back()));
  parts.push_back(trimmed(text.substr(begin)));
  return parts;
}

/// A number and what follows it: "1.5 MiB" is 1.5 and "MiB".
struct Amount {
  double number = 0;
  std::string unit;
};

std::optional<Amount> amount_of(std::string_view text) {
  text = trimmed(text);
  Amount amount;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount.number);
  if (error != std::errc{} || !std::isfinite(amount.number)) return std::nullopt;
  amount.unit = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  const bool number_goes_on = amount.unit.find_first_of(".0123456789") != std::string::npos;
  return number_goes_on ? std::nullopt : std::optional(amount);
}

/// How many of `unit` one of `other` is; none if they measure different things.
std::optional<double> ratio(const std::string& other, const std::string& unit) {
  if (other == unit) return 1;
  constexpr std::string_view many = "1000";  // parsers of whole amounts must not cut 1 KB to 0 MB
  const std::string one = fmt::format("{}{}", many, unit), two = fmt::format("{}{}", many, other);
  if (const auto a = parse_bytes(one), b = parse_bytes(two); a && b)
    return static_cast<double>(b->count) / static_cast<double>(a->count);
  if (const auto a = parse_duration(one), b = parse_duration(two); a && b)
    return in_seconds(*b) / in_seconds(*a);
  if (const auto a = parse_bandwidth(one), b = parse_bandwidth(two); a && b)
    return b->bytes_per_second / a->bytes_per_second;
  if (const auto a = parse_flop_rate(one), b = parse_flop_rate(two); a && b)
    return b->flops_per_second / a->flops_per_second;
  return std::nullopt;
}

struct NumberRange {
  double first = 0, last = 0, step = 1;
  bool geometric = false;
  std::string unit;
};

/// Where the step of "8+2" or "64MiB*2" begins; the "+" of 1e+3 is none.
std::size_t step_sign(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i)
    if (text[i] == '*' || (text[i] == '+' && text[i - 1] != 'e' && text[i - 1] != 'E')) return i;
  return std::string_view::npos;
}

NumberRange parse_range(std::string_view given, std::string_view text, const Amount& first) {
  constexpr std::string_view expected =
      "expected a range such as 2..8, 2..8+2 or 1MiB..64MiB*2, got \"{}\"";
  const auto fail = [&]() { refuse(given, fmt::format(fmt::runtime(expected), text)); };
  const std::string_view rest = text.substr(text.find("..") + 2);
  const std::size_t sign = step_sign(rest);
  const auto last = amount_of(rest.substr(0, sign));
  if (!last) fail();
  NumberRange range{first.number, 0, 1, false, first.unit.empty() ? last->unit : first.unit};
  const auto in_unit = [&](const Amount& amount) {
    if (amount.unit.empty() && !range.unit.empty()) return amount.number;
    const auto factor = ratio(amount.unit, range.unit);
    if (!factor)
      refuse(given, fmt::format("\"{}\" and \"{}\" are units of different things", range.unit,
                                amount.unit));
    return amount.number * *factor;
  };
  if (!first.unit.empty() && last->unit.empty()) fail();  // 1MiB..64
  range.last = in_unit(*last);
  if (sign != std::string_view::npos) {
    const auto step = amount_of(rest.substr(sign + 1));
    if (!step) fail();
    range.geometric = rest[sign] == '*';
    if (range.geometric && !step->unit.empty()) fail();
    range.step = range.geometric ? step->number : in_unit(*step);
  }
  if (range.last < range.first) refuse(given, fmt::format("the range {} goes down", text));
  if (range.geometric && (range.step <= 1 || range.first <= 0))
    refuse(
        given,
        fmt::format("the range {} never ends: expected a first value above 0 and a factor above 1",
                    text));
  if (!range.geometric && range.step <= 0)
    refuse(given, fmt::format("the range {} never ends: expected a step above 0", text));
  return range;
}

[[noreturn]] void refuse_too_many(std::string_view given) {
  refuse(given, fmt::format("more than {} values", Grid::most_points));
}

void add_range(std::string_view given, const NumberRange& range, std::vector<std::string>& values) {
  const double steps = range.geometric ? std::log(range.last / range.first) / std::log(range.step)
                                       : (range.last - range.first) / range.step;
  if (!(steps < static_cast<double>(Grid::most_points))) refuse_too_many(given);
  // The last value counts if rounding alone keeps the steps from meeting it.
  const auto count = static_cast<std::size_t>(std::floor(steps + 1e-9)) + 1;
  for (std::size_t i = 0; i < count; ++i) {
    const auto times = static_cast<double>(i);
    const double value = range.geometric ? range.first * std::pow(range.step, times)
                                         : range.first + times * range.step;
    constexpr double exact = 1e15;  // whole numbers below are written as such
    values.push_back(value == std::floor(value) && std::abs(value) < exact
                         ? fmt::format("{}{}", static_cast<std::int64_t>(value), range.unit)
                         : fmt::format("{:.12g}{}", value, range.unit));
  }
}

}  // namespace

std::vector<std::string> parse_values(const std::string& written, std::string_view text) {
  std::vector<std::string> values;
  for (const std::string_view part : split(written, text)) {
    if (part.empty()) refuse(written, "a value is empty");
    const std::size_t dots = part.find("..");
    const auto first =
        dots == std::string_view::npos ? std::nullopt : amount_of(part.substr(0, dots));
    if (first)
      add_range(written, parse_range(written, part, *first), values);
    else
      values.emplace_back(part);
    if (values.size() > Grid::most_points) refuse_too_many(written);
  }
  std::unordered_set<std::string_view> seen;
  for (const std::string& value : values)
    if (!seen.insert(value).second) refuse(written, fmt::format("{} is in the list twice", value));
  return values;
}

Axis parse_axis(const std::string& text) {
  const std::string written = "--vary " + text;
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    refuse(written, "expected KEY=VALUE,VALUE,..., such as training.bucket_cap=1MiB,25MiB");
  return {text.substr(0, equals), parse_values(written, std::string_view(text).substr(equals + 1))};
}

Grid::Grid(std::vector<Axis> axes) : axes_(std::move(axes)) {
  std::unordered_set<std::string_view> keys;
  for (const Axis& axis : axes_) {
    if (!keys.insert(axis.key).second) refuse("--vary " + axis.key, "this key is varied twice");
    if (axis.values.size() > most_points / points_)
      throw InputError(fmt::format("the grid has more than {} points: vary less", most_points));
    points_ *= axis.values.size();
  }
}

std::vector<std::size_t> Grid::indices(std::size_t point) const {
  std::vector<std::size_t> indices(axes_.size());
  for (std::size_t a = axes_.size(); a-- > 0;) {
    indices[a] = point % axes_[a].values.size();
    point /= axes_[a].values.size();
  }
  return indices;
}

std::size_t Grid::point_of(const std::vector<std::size_t>& indices) const {
  std::size_t point = 0;
  for (std::size_t a = 0; a < axes_.size(); ++a)
    point = point * axes_[a].values.size() + indices[a];
  return point;
}

namespace {

/// Throws InputError where a mapping of the axis says what `by` gives as well.
void check_not_within(const Axis& axis, const std::string& key, const std::string& by) {
  if (!key.starts_with(axis.key + ".")) return;
  for (const std::string& value : axis.values) {
    const Setting whole = varied(axis, value);
    if (said_within(whole, key))
      throw InputError(
          fmt::format("{} is given by {} and by {}: leave one out", key, by, setting_text(whole)));
  }
}

}  // namespace

std::vector<Setting> Grid::settings(std::size_t point) const {
  std::vector<Setting> settings;
  const std::vector<std::size_t> which = indices(point);
  for (std::size_t a = 0; a < axes_.size(); ++a)
    settings.push_back(varied(axes_[a], axes_[a].values[which[a]]));
  return settings;
}

void check_varied_alone(const Grid& grid, const std::vector<Setting>& set) {
  for (const Axis& axis : grid.axes()) {
    if (axis.key == "training.strategy")
      throw InputError(
          fmt::format("--vary training.strategy: it varies nothing, for `compare` says which "
                      "strategies are predicted: write --set compare=[{}] in its place",
                      shown(fmt::format("{}", fmt::join(axis.values, ",")))));
    for (const Setting& setting : set) {
      if (setting.key == axis.key)
        throw InputError(fmt::format("{} is given by {} and by --vary: leave one out", axis.key,
                                     setting_text(setting)));
      check_not_within(axis, setting.key, setting_text(setting));
    }
    for (const Axis& other : grid.axes())
      check_not_within(axis, other.key, fmt::format("--vary {}=...", shown(other.key)));
  }
}

std::string describe_point(const Grid& grid, std::size_t point) {
  std::string text;
  for (const auto& [key, value, written] : grid.settings(point))
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", key, value);
  return text;
}

}  // namespace ddpsim
