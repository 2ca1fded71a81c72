#include "tools/picture/svg.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "model/base/printable.hpp"

namespace ddpsim {

extern const std::string_view picture_css;

std::string escaped_xml(std::string_view text) {
  std::string result;
  for (const char c : printable(text, "\n")) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string shortened(const std::string& name, std::size_t most) {
  if (name.size() <= most) return name;
  const std::size_t kept = std::max<std::size_t>(most / 2, 2) - 1;
  std::size_t from = name.size() - kept, to = kept;
  // No character of several bytes is cut in two.
  while (to > 0 && (static_cast<unsigned char>(name[to]) & 0xC0U) == 0x80U) --to;
  while (from < name.size() && (static_cast<unsigned char>(name[from]) & 0xC0U) == 0x80U) ++from;
  return name.substr(0, to) + "\u2026" + name.substr(from);
}

std::string coordinate(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string svg_head(double width, double height, std::string_view title,
                     std::string_view description) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"ddpsim\" role=\"img\" "
      "viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" aria-label=\"{2}\">"
      "<title>{2}</title><desc>{3}</desc>\n<style>\n{4}</style>\n"
      "<rect width=\"100%\" height=\"100%\" style=\"fill:var(--paper)\"/>\n",
      coordinate(width), coordinate(height), escaped_xml(title), escaped_xml(description),
      picture_css);
}

double tick_step(double length, int most) {
  if (!(length > 0)) return 1;
  const double least = length / std::max(1, most);
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double times : {1.0, 2.0, 5.0, 10.0})
    if (power * times >= least * (1 - 1e-9)) return power * times;
  return power * 10;
}

std::string tick_label(double value, double step) {
  const int digits = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 9);
  return fmt::format("{:.{}f}", std::abs(value) < step * 1e-6 ? 0.0 : value, digits);
}

}  // namespace ddpsim
