#include "scenarios/reader/text/quantity_text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

namespace ddpsim {
namespace {

struct Unit {
  std::string_view name;
  double size;
};

constexpr std::array durations{Unit{"ps", 1e-12}, Unit{"ns", 1e-9}, Unit{"us", 1e-6},
                               Unit{"µs", 1e-6},  Unit{"ms", 1e-3}, Unit{"s", 1},
                               Unit{"min", 60}};
constexpr std::array sizes{Unit{"B", 1},
                           Unit{"kB", 1e3},
                           Unit{"KB", 1e3},
                           Unit{"MB", 1e6},
                           Unit{"GB", 1e9},
                           Unit{"TB", 1e12},
                           Unit{"KiB", 1024.0},
                           Unit{"MiB", 1048576.0},
                           Unit{"GiB", 1073741824.0},
                           Unit{"TiB", 1099511627776.0}};
constexpr std::array rates{
    Unit{"B/s", 1},           Unit{"kB/s", 1e3},           Unit{"MB/s", 1e6},
    Unit{"GB/s", 1e9},        Unit{"TB/s", 1e12},          Unit{"KiB/s", 1024.0},
    Unit{"MiB/s", 1048576.0}, Unit{"GiB/s", 1073741824.0}, Unit{"bit/s", 0.125},
    Unit{"Mbit/s", 0.125e6},  Unit{"Gbit/s", 0.125e9},     Unit{"Mb/s", 0.125e6},
    Unit{"Gb/s", 0.125e9},    Unit{"Tbit/s", 0.125e12}};
constexpr std::array flop_rates{Unit{"FLOP/s", 1},     Unit{"MFLOP/s", 1e6},  Unit{"GFLOP/s", 1e9},
                                Unit{"TFLOP/s", 1e12}, Unit{"PFLOP/s", 1e15}, Unit{"GFLOPS", 1e9},
                                Unit{"TFLOPS", 1e12},  Unit{"PFLOPS", 1e15}};

/// A text in two: a number, and what follows it but for spaces between.
struct Split {
  double value = 0;
  std::string_view number, unit;
};

std::optional<Split> split(std::string_view text) {
  Split parts;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parts.value);
  if (error != std::errc{} || !std::isfinite(parts.value)) return std::nullopt;
  const auto length = static_cast<std::size_t>(end - text.data());
  parts.number = text.substr(0, length);
  parts.unit = text.substr(length);
  while (!parts.unit.empty() && parts.unit.front() == ' ') parts.unit.remove_prefix(1);
  return parts;
}

/// The value in base units.
std::optional<double> parse(std::string_view text, std::span<const Unit> units) {
  const auto parts = split(text);
  if (!parts) return std::nullopt;
  for (const Unit& known : units)
    if (known.name == parts->unit && std::isfinite(parts->value * known.size))
      return parts->value * known.size;
  return std::nullopt;
}

/// Without regard to capitals, and to how rates are spelt: "gb/s" and "gbps" are alike.
std::string plainly(std::string_view unit) {
  std::string plain;
  for (const char c : unit) plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (plain.ends_with("bps"))
    plain.replace(plain.size() - 2, 2, unit.ends_with("Bps") ? "/s" : "it/s");
  return plain;
}

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  const auto seconds = parse(text, durations);
  constexpr double a_day = 86400;  // far beyond any step, far within 64 bits of picoseconds
  if (!seconds || std::abs(*seconds) > a_day) return std::nullopt;
  return from_seconds(*seconds);
}

std::optional<Bytes> parse_bytes(std::string_view text) {
  const auto bytes = parse(text, sizes);
  constexpr double limit = 1e17;
  if (!bytes || std::abs(*bytes) > limit) return std::nullopt;
  // DDP truncates fractional caps to whole bytes. What is whole but for the rounding of two doubles
  // is no fraction: 1.001 kB are 1001 bytes, though the product is 1000.9999999999999.
  const double nearest = std::nearbyint(*bytes);
  const double rounding = std::abs(*bytes) * std::numeric_limits<double>::epsilon();
  const bool is_whole = std::abs(*bytes - nearest) <= rounding;
  return Bytes{static_cast<std::int64_t>(is_whole ? nearest : *bytes)};
}

std::optional<Bandwidth> parse_bandwidth(std::string_view text) {
  const auto rate = parse(text, rates);
  if (!rate) return std::nullopt;
  return Bandwidth{*rate};
}

std::optional<FlopRate> parse_flop_rate(std::string_view text) {
  const auto rate = parse(text, flop_rates);
  if (!rate) return std::nullopt;
  return FlopRate{*rate};
}

std::optional<Price> parse_price(std::string_view text) {
  constexpr std::size_t code = 3;
  constexpr std::string_view hourly = "/h";
  if (text.size() <= code + hourly.size() || !text.ends_with(hourly)) return std::nullopt;
  text.remove_suffix(hourly.size());
  const std::string_view currency = text.substr(text.size() - code);
  for (const char c : currency)
    if (c < 'A' || c > 'Z') return std::nullopt;
  const std::array unit{Unit{currency, 1}};
  const auto per_hour = parse(text, unit);
  if (!per_hour) return std::nullopt;
  return Price{*per_hour, std::string(currency)};
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

namespace {

std::span<const Unit> units_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::duration:
      return durations;
    case Quantity::bytes:
      return sizes;
    case Quantity::bandwidth:
      return rates;
    case Quantity::flop_rate:
      return flop_rates;
  }
  return durations;
}

/// What std::from_chars takes for a finite number, its sign aside.
constexpr const char* unsigned_number = "([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?";

}  // namespace

std::vector<std::string_view> unit_names(Quantity quantity) {
  std::vector<std::string_view> names;
  for (const Unit& unit : units_of(quantity)) names.push_back(unit.name);
  return names;
}

std::string quantity_meant(std::string_view text, Quantity quantity) {
  const auto parts = split(text);
  constexpr std::size_t longest = 20;
  if (!parts || parts->unit.empty() || text.size() > longest) return "";
  for (const std::string_view name : unit_names(quantity))
    if (plainly(name) == plainly(parts->unit) && name != parts->unit)
      return std::string(parts->number) + " " + std::string(name);
  return "";
}

std::string quantity_pattern(Quantity quantity, Sign sign) {
  std::string units;
  for (const std::string_view unit : unit_names(quantity))
    units.append(units.empty() ? "" : "|").append(unit);
  // Above zero: a digit other than 0 comes before the exponent or the unit.
  const std::string begin = sign == Sign::any        ? "-?"
                            : sign == Sign::positive ? "(?=[0-9.]*[1-9])"
                                                     : "";
  return "^" + begin + unsigned_number + " *(" + units + ")$";
}

std::string integer_pattern() {
  return "^-?[0-9]+$";
}

std::string number_pattern() {
  return std::string("^-?") + unsigned_number + "$";
}

std::string price_pattern() {
  return std::string("^(?=[0-9.]*[1-9])") + unsigned_number + " *[A-Z]{3}/h$";
}

std::string percent_pattern() {
  return std::string("^-?") + unsigned_number + " *% *$";
}

std::string times_pattern() {
  return std::string("^") + unsigned_number + " *x$";
}

}  // namespace ddpsim
