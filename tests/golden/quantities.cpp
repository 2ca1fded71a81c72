#include "tests/golden/quantities.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

namespace ddpsim::golden {
namespace {

constexpr std::array factors{0.0625, 0.125, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0};

double factor(const Draw& draw, const std::string& place) {
  return factors[draw.number(place) % factors.size()];
}

/// "450 GB/s" is 450 and " GB/s"; 0 of what is no number.
std::pair<double, std::string> parted(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return end == text.c_str() ? std::pair{0.0, text} : std::pair{number, std::string(end)};
}

std::string whole_number(const Draw& draw, const Form& form, double near,
                         const std::string& place) {
  const double scaled = std::max(near, 1.0) * factor(draw, place);
  const auto highest = static_cast<double>(form.highest);
  const auto lowest = static_cast<double>(form.lowest);
  return std::to_string(static_cast<std::int64_t>(std::clamp(scaled, lowest, highest)));
}

std::string real_number(const Draw& draw, const Form& form, double near, const std::string& place) {
  if (form.most - form.least <= 2) {  // a share: one of twenty steps of the range
    const auto step = static_cast<double>(draw.between(place, 0, 20));
    return fmt::format("{:.6g}", form.least + (form.most - form.least) * step / 20);
  }
  const double scaled = (near == 0 ? 1 : near) * factor(draw, place);
  return fmt::format("{:.6g}", std::clamp(scaled, form.least, form.most));
}

}  // namespace

std::string drawn_quantity(const Draw& draw, const Form& form, const std::string& near,
                           const std::string& place) {
  const auto [number, unit] = parted(near);
  const auto with_unit = [&](const char* otherwise) {
    if (number == 0 || unit.empty()) return std::string(otherwise);
    return fmt::format("{:.6g}{}", number * factor(draw, place), unit);
  };
  switch (form.kind) {
    case Form::Kind::integer:
      return whole_number(draw, form, number, place);
    case Form::Kind::number:
      return real_number(draw, form, number, place);
    case Form::Kind::percent:
      return fmt::format("{} %", draw.between(place, 0, 20));
    case Form::Kind::times:
      return real_number(draw, form, number, place) + "x";
    case Form::Kind::time:
      return with_unit("7 us");
    case Form::Kind::size:
      return with_unit("3 MiB");
    case Form::Kind::bandwidth:
      return with_unit("20 GB/s");
    case Form::Kind::flop_rate:
      return with_unit("50 TFLOP/s");
    case Form::Kind::price:
      return with_unit("2 USD/h");
    default:
      return near;
  }
}

}  // namespace ddpsim::golden
