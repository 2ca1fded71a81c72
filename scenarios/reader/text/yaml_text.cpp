#include "scenarios/reader/text/yaml_text.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "model/base/printable.hpp"

namespace ddpsim {
std::string exact(Duration time) {
  constexpr std::array<std::pair<std::int64_t, const char*>, 4> units{
      {{1'000'000'000'000, "s"}, {1'000'000'000, "ms"}, {1'000'000, "us"}, {1'000, "ns"}}};
  const std::int64_t ticks = time.count();
  for (const auto& [unit, name] : units) {
    if (ticks < unit) continue;
    std::string digits =
        fmt::format("{}", unit + ticks % unit).substr(1);  // the leading zeros stay
    digits.erase(digits.find_last_not_of('0') + 1);
    return fmt::format("{}{}{} {}", ticks / unit, digits.empty() ? "" : ".", digits, name);
  }
  return fmt::format("{} ps", ticks);
}

std::string exact(Bytes size) {
  for (const auto& [unit, name] : {std::pair{GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}})
    if (size >= unit && size.count % unit.count == 0)
      return fmt::format("{} {}", size.count / unit.count, name);
  return fmt::format("{} B", size.count);
}

std::string exact(Bandwidth rate) {
  const double gigabytes = rate.bytes_per_second / 1e9;
  return gigabytes * 1e9 == rate.bytes_per_second ? fmt::format("{} GB/s", gigabytes)
                                                  : fmt::format("{} B/s", rate.bytes_per_second);
}

std::string exact(FlopRate rate) {
  const double teraflops = rate.flops_per_second / 1e12;
  return teraflops * 1e12 == rate.flops_per_second
             ? fmt::format("{} TFLOP/s", teraflops)
             : fmt::format("{} FLOP/s", rate.flops_per_second);
}

void write_text(YAML::Emitter& out, const std::string& text) {
  std::string valid;
  bool plain = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const std::string character = text.substr(at, std::max<std::size_t>(length, 1));
    plain =
        plain && character != "\x7f" && character != "\xe2\x80\xa8" && character != "\xe2\x80\xa9";
    valid += length == 0 ? "\xef\xbf\xbd" : character;
    at += character.size();
  }
  // The Emitter writes DEL and the line breaks of Unicode as they are, unless it escapes all that
  // is not ASCII.
  if (!plain) out << YAML::EscapeNonAscii;
  out << YAML::DoubleQuoted << valid;
}

}  // namespace ddpsim
