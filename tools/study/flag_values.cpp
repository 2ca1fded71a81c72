#include "tools/study/flag_values.hpp"

#include <cmath>
#include <sstream>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/quantity_text.hpp"

namespace ddpsim {

double share_of(const std::string& flag, const std::string& text) {
  std::string number = text;
  const bool percent = number.ends_with('%');
  if (percent) number.pop_back();
  if (percent && number.ends_with(' ')) number.pop_back();
  const auto value = parse_number(number);
  if (value && *value >= 0 && percent) return *value / 100;
  if (value && *value >= 0 && *value < 1) return *value;
  throw InputError(fmt::format("{} {}: expected a share such as 5% or 0.05", flag, text));
}

Duration duration_of(const std::string& flag, const std::string& text) {
  const auto value = parse_duration(text);
  if (value && *value > Duration::zero()) return *value;
  const auto bare = parse_number(text);
  const std::string meant =
      bare && *bare > 0 ? fmt::format("; of seconds write \"{} s\"", text) : "";
  throw InputError(
      fmt::format("{} {}: expected a time with its unit, such as \"60 s\"{}", flag, text, meant));
}

std::vector<Bytes> sizes_of(const std::string& flag, const std::string& text) {
  std::vector<Bytes> sizes;
  std::istringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) {
    const auto size = parse_bytes(item);
    if (!size || size->count <= 0)
      throw InputError(
          fmt::format("{} {}: expected sizes such as 1MiB,25MiB, got \"{}\"", flag, text, item));
    sizes.push_back(*size);
  }
  if (sizes.empty()) throw InputError(fmt::format("{}: expected sizes such as 1MiB,25MiB", flag));
  return sizes;
}

int count_of(const std::string& flag, const std::string& text, int least, int most) {
  const auto value = parse_integer(text);
  if (value && *value >= least && *value <= most) return static_cast<int>(*value);
  throw InputError(
      fmt::format("{} {}: expected a whole number from {} to {}", flag, text, least, most));
}

}  // namespace ddpsim
