#include "model/base/quantity.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

namespace ddpsim {
namespace {

/// Four significant digits at most and no trailing zeros: 25, 12.34, 0.5.
std::string significant(double value) {
  return fmt::format("{:.4g}", value);
}

template <std::size_t N>
std::string with_unit(double value, const std::array<std::pair<double, const char*>, N>& units) {
  for (const auto& [size, name] : units)
    if (std::abs(value) >= size) return significant(value / size) + " " + name;
  return significant(value / units.back().first) + " " + units.back().second;
}

}  // namespace

std::string to_string(Duration time) {
  if (time == Duration::zero()) return "0 us";
  return with_unit(in_seconds(time),
                   std::array<std::pair<double, const char*>, 5>{
                       {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}, {1e-12, "ps"}}});
}

std::string to_string(Bytes size) {
  constexpr std::array<std::pair<std::int64_t, const char*>, 3> binary{
      {{GiB.count, "GiB"}, {MiB.count, "MiB"}, {KiB.count, "KiB"}}};
  for (const auto& [unit, name] : binary)
    if (std::abs(size.count) >= unit)
      return significant(static_cast<double>(size.count) / static_cast<double>(unit)) + " " + name;
  return fmt::format("{} B", size.count);
}

std::string to_string(Bandwidth rate) {
  return with_unit(rate.bytes_per_second,
                   std::array<std::pair<double, const char*>, 4>{
                       {{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}, {1, "B/s"}}});
}

std::string to_string(FlopRate rate) {
  return with_unit(rate.flops_per_second,
                   std::array<std::pair<double, const char*>, 3>{
                       {{1e12, "TFLOP/s"}, {1e9, "GFLOP/s"}, {1, "FLOP/s"}}});
}

}  // namespace ddpsim
