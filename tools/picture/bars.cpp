#include "tools/picture/bars.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "tools/picture/svg.hpp"

namespace ddpsim {
namespace {

constexpr double label_width = 270, bar_width = 690, value_width = 120;
constexpr double row_height = 20, heading_height = 28, legend_height = 30, axis_height = 26;
constexpr std::size_t most_letters = 42;  ///< of a label
constexpr double part_letter = 7, swatch = 12;

double length_of(const BarPicture::Row& row) {
  return std::accumulate(row.lengths.begin(), row.lengths.end(), 0.0);
}

std::string legend(const BarPicture& bars) {
  std::string text;
  double x = 8;
  for (const BarPicture::Part& part : bars.parts) {
    text += fmt::format(
        "<rect x=\"{}\" y=\"8\" width=\"{}\" height=\"{}\" style=\"fill:var(--{})\"/>"
        "<text x=\"{}\" y=\"18\">{}</text>\n",
        coordinate(x), coordinate(swatch), coordinate(swatch), escaped_xml(part.paint),
        coordinate(x + swatch + 5), escaped_xml(part.name));
    x += swatch + 24 + part_letter * static_cast<double>(part.name.size());
  }
  return text;
}

std::string parts_of(const BarPicture& bars, const BarPicture::Row& row, double y, double scale) {
  std::string text, said;
  double x = label_width;
  for (std::size_t i = 0; i < row.lengths.size(); ++i) {
    if (row.lengths[i] <= 0) continue;
    said += fmt::format("{}{} {:.3f} {}", said.empty() ? "" : ", ", bars.parts[i].name,
                        row.lengths[i], bars.unit);
    text += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" style=\"fill:var(--{});"
        "stroke:var(--paper);stroke-width:1\"/>",
        coordinate(x), coordinate(y + 3), coordinate(row.lengths[i] * scale),
        coordinate(row_height - 5), escaped_xml(bars.parts[i].paint));
    x += row.lengths[i] * scale;
  }
  return fmt::format("<g><title>{}: {}</title>{}</g>", escaped_xml(row.label), escaped_xml(said),
                     text);
}

}  // namespace

std::string bar_picture(const BarPicture& bars) {
  double longest = 0, high = legend_height;
  for (const BarPicture::Row& row : bars.rows) {
    longest = std::max(longest, length_of(row));
    high += row.lengths.empty() ? heading_height : row_height;
  }
  const double scale = longest > 0 ? bar_width / longest : 0;
  const double below = high;
  high += axis_height;
  std::string text =
      svg_head(label_width + bar_width + value_width, high, bars.title, bars.description);
  text += legend(bars);
  const double step = tick_step(longest, 8);
  for (int i = 0; longest > 0 && i * step <= longest * (1 + 1e-9); ++i) {
    const double x = label_width + i * step * scale;
    text += fmt::format(
        "<path class=\"grid\" d=\"M{0} {1}V{2}\"/><text class=\"soft\" x=\"{0}\" y=\"{3}\" "
        "text-anchor=\"middle\">{4}{5}</text>\n",
        coordinate(x), coordinate(legend_height), coordinate(below), coordinate(below + 16),
        tick_label(i * step, step), i == 0 ? fmt::format(" {}", escaped_xml(bars.unit)) : "");
  }
  double y = legend_height;
  for (const BarPicture::Row& row : bars.rows) {
    if (row.lengths.empty()) {
      text += fmt::format("<text x=\"8\" y=\"{}\" style=\"font-weight:700\">{}</text>\n",
                          coordinate(y + heading_height - 9), escaped_xml(row.label));
      y += heading_height;
      continue;
    }
    text += fmt::format(
        "<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>{}"
        "<text class=\"pointed\" x=\"{}\" y=\"{}\">{:.3f} {}</text>\n",
        coordinate(label_width - 8), coordinate(y + 14),
        escaped_xml(shortened(row.label, most_letters)), parts_of(bars, row, y, scale),
        coordinate(label_width + length_of(row) * scale + 6), coordinate(y + 14), length_of(row),
        escaped_xml(bars.unit));
    y += row_height;
  }
  return text + "</svg>\n";
}

}  // namespace ddpsim
