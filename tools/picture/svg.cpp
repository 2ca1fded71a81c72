#include "tools/picture/svg.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "model/base/printable.hpp"

namespace ddpsim {
namespace {

/// The colours of all pictures. Those of a pass or a kind of work stay apart for eyes that confuse
/// red and green: they differ in lightness too.
constexpr std::string_view colours = R"(<style>
.ddpsim{--ink:#1b2733;--soft:#5a6875;--line:#c9d1d9;--paper:#ffffff;--forward:#3f7fbf;)"
                                     R"(--backward:#1f4e8c;--optimizer:#4b9b6e;--copy:#a8863a;
--collective:#d9622b;--hook:#a14a8f;--launch:#9aa7b3;--fill:#f2c9a8;--hatch:#b3261e;--good:#2f7d4f;)"
                                     R"(--band:#3f7fbf;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-size:12px}
@media (prefers-color-scheme:dark){.ddpsim{--ink:#e6edf3;--soft:#9fb0bf;--line:#3a4653;--paper:#11171e;)"
                                     R"(--forward:#6cabe6;--backward:#3e77c2;--optimizer:#6cc394;
--copy:#d0b061;--collective:#f08a52;--hook:#d07fc0;--launch:#66727e;--fill:#7a4a2a;--hatch:#ff8a80;)"
                                     R"(--good:#6cc394;--band:#6cabe6}}
@media print{.ddpsim{--ink:#000;--soft:#444;--line:#bbb;--paper:#fff;--forward:#3f7fbf;)"
                                     R"(--backward:#1f4e8c;--optimizer:#4b9b6e;--copy:#a8863a;
--collective:#d9622b;--hook:#a14a8f;--launch:#9aa7b3;--fill:#f2c9a8;--hatch:#b3261e;--good:#2f7d4f;)"
                                     R"(--band:#3f7fbf}}
.ddpsim text{fill:var(--ink)}.ddpsim .soft{fill:var(--soft)}
.ddpsim .grid{stroke:var(--line);stroke-width:1;fill:none}
.ddpsim .forward{stroke:var(--forward)}.ddpsim .backward{stroke:var(--backward)}
.ddpsim .optimizer{stroke:var(--optimizer)}.ddpsim .copy{stroke:var(--copy)}
.ddpsim .collective{stroke:var(--collective)}.ddpsim .hook{stroke:var(--hook)}
.ddpsim .launch{stroke:var(--launch)}.ddpsim .fill{stroke:var(--fill)}
.ddpsim .odd{opacity:.78}.ddpsim .on{fill:#fff;font-size:10px;pointer-events:none}
.ddpsim .curve{fill:none;stroke:var(--forward);stroke-width:2}
.ddpsim .pointed{paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}
.ddpsim .dash{stroke-dasharray:5 4}
</style>)";

}  // namespace

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
      "<title>{2}</title><desc>{3}</desc>\n{4}\n"
      "<rect width=\"100%\" height=\"100%\" style=\"fill:var(--paper)\"/>\n",
      coordinate(width), coordinate(height), escaped_xml(title), escaped_xml(description), colours);
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
