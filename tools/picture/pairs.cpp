#include "tools/picture/pairs.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "tools/picture/svg.hpp"

namespace ddpsim {
namespace {

constexpr double labels_end = 262, bars_from = 270, bars_wide = 560, after_bars = 280;
constexpr double pair_height = 26, bar_height = 10, title_height = 28;
constexpr double key_height = 30, scale_height = 24;
constexpr std::size_t letters_of_label = 42;

std::string bar(double y, double wide, std::string_view paint) {
  return fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" style=\"fill:var(--{})\"/>",
      coordinate(bars_from), coordinate(y), coordinate(wide), coordinate(bar_height), paint);
}

std::string key() {
  return "<rect x=\"8\" y=\"8\" width=\"12\" height=\"12\" style=\"fill:var(--forward)\"/>"
         "<text x=\"25\" y=\"18\">predicted</text>"
         "<rect x=\"100\" y=\"8\" width=\"12\" height=\"12\" style=\"fill:var(--launch)\"/>"
         "<text x=\"117\" y=\"18\">measured</text>\n";
}

std::string pair(const PairPicture& pairs, const PairPicture::Row& row, double y, double scale) {
  const std::string lengths =
      fmt::format("{:.2f} | {:.2f} {}", row.predicted, row.measured, pairs.unit);
  const double percent = std::round(1000 * (row.predicted / row.measured - 1)) / 10;
  const std::string error = percent == 0 ? "0.0 %" : fmt::format("{:+.1f} %", percent);
  const std::string remark = row.remark.empty() ? "" : fmt::format(", {}", row.remark);
  return fmt::format(
      "<g class=\"pair\"><title>{0}: predicted | measured {1}, {2}{3}</title>{4}{5}</g>"
      "<text class=\"soft\" x=\"{6}\" y=\"{7}\" text-anchor=\"end\">{8}</text>"
      "<text class=\"pointed\" x=\"{9}\" y=\"{7}\">{1}, {2}{3}</text>\n",
      escaped_xml(row.label), escaped_xml(lengths), error, escaped_xml(remark),
      bar(y + 2, row.predicted * scale, "forward"),
      bar(y + 2 + bar_height, row.measured * scale, "launch"), coordinate(labels_end),
      coordinate(y + 16), escaped_xml(shortened(row.label, letters_of_label)),
      coordinate(bars_from + std::max(row.predicted, row.measured) * scale + 7));
}

}  // namespace

std::string pair_picture(const PairPicture& pairs) {
  double longest = 0, below = key_height;
  for (const PairPicture::Row& row : pairs.rows) {
    longest = std::max({longest, row.predicted, row.measured});
    below += row.heading ? title_height : pair_height;
  }
  const double scale = longest > 0 ? bars_wide / longest : 0;
  std::string text = svg_head(bars_from + bars_wide + after_bars, below + scale_height, pairs.title,
                              pairs.description) +
                     key();
  const double step = tick_step(longest, 8);
  for (int i = 0; longest > 0 && i * step <= longest * (1 + 1e-9); ++i)
    text += fmt::format(
        "<path class=\"grid\" d=\"M{0} {1}V{2}\"/><text class=\"soft\" x=\"{0}\" y=\"{3}\" "
        "text-anchor=\"middle\">{4}{5}</text>\n",
        coordinate(bars_from + i * step * scale), coordinate(key_height), coordinate(below),
        coordinate(below + 16), tick_label(i * step, step),
        i == 0 ? fmt::format(" {}", escaped_xml(pairs.unit)) : "");
  double y = key_height;
  for (const PairPicture::Row& row : pairs.rows) {
    if (row.heading)
      text += fmt::format("<text x=\"8\" y=\"{}\" style=\"font-weight:700\">{}</text>\n",
                          coordinate(y + title_height - 9), escaped_xml(row.label));
    else
      text += pair(pairs, row, y, scale);
    y += row.heading ? title_height : pair_height;
  }
  return text + "</svg>\n";
}

}  // namespace ddpsim
