#include "tools/picture/plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "tools/picture/svg.hpp"

namespace ddpsim {
namespace {

constexpr double width = 860, height = 380, left = 74, right = 24, top = 20, bottom = 52;
constexpr double letter_width = 6.4, row_height = 18;
constexpr std::array<std::string_view, 6> inks{"forward", "collective", "optimizer",
                                               "hook",    "backward",   "copy"};

/// What part of an axis is shown, and where its values lie.
struct Axis {
  double low = 0, high = 1, from = 0, to = 1;
  bool log = false;
  double operator()(double value) const {
    if (high == low) return (from + to) / 2;
    const double share =
        log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return from + share * (to - from);
  }
};

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void cover(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool seen() const { return low <= high; }
};

/// Labels of points keep off one another: each takes the nearest row that is free there.
class Labels {
 public:
  std::string place(double x, double y, std::string_view text) {
    const double wide = static_cast<double>(text.size()) * letter_width;
    const double from = std::clamp(x - wide / 2, left + 2, width - right - wide);
    double at = y;
    for (int turn = 0; turn < 24; ++turn) {
      const double step = (turn + 1) / 2 * row_height * (turn % 2 == 0 ? 1 : -1);
      at = y + step;
      const bool taken = std::any_of(boxes_.begin(), boxes_.end(), [&](const Box& box) {
        return std::abs(box.y - at) < row_height - 3 && box.from < from + wide && from < box.to;
      });
      if (!taken && at > top + 8 && at < height - bottom - 4) break;
    }
    boxes_.push_back({from, from + wide, at});
    return fmt::format("<text class=\"pointed\" x=\"{}\" y=\"{}\">{}</text>\n", coordinate(from),
                       coordinate(at), escaped_xml(text));
  }
  void keep_off(double from, double to, double y) { boxes_.push_back({from, to, y}); }

 private:
  struct Box {
    double from, to, y;
  };
  std::vector<Box> boxes_;
};

std::string path_of(const Curve& curve, const Axis& x, const Axis& y) {
  std::string path;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const auto& [at, value] = curve.points[i];
    if (i == 0)
      path = fmt::format("M{} {}", coordinate(x(at)), coordinate(y(value)));
    else if (curve.stairs)
      path += fmt::format("H{}V{}", coordinate(x(at)), coordinate(y(value)));
    else
      path += fmt::format("L{} {}", coordinate(x(at)), coordinate(y(value)));
  }
  return path;
}

std::string band_of(const Curve& curve, const Axis& x, const Axis& y) {
  std::string path;
  for (std::size_t i = 0; i < curve.points.size(); ++i)
    path += fmt::format("{}{} {}", i == 0 ? "M" : "L", coordinate(x(curve.points[i].first)),
                        coordinate(y(curve.band[i].second)));
  for (std::size_t i = curve.points.size(); i-- > 0;)
    path += fmt::format("L{} {}", coordinate(x(curve.points[i].first)),
                        coordinate(y(curve.band[i].first)));
  return path + "z";
}

std::vector<double> ticks_of(const Axis& axis, int most) {
  std::vector<double> ticks;
  if (axis.log) {
    const double octaves = std::log2(axis.high / axis.low);
    const double step = std::pow(2.0, std::max(1.0, std::ceil(octaves / most)));
    for (double at = axis.low; at <= axis.high * 1.0001; at *= step) ticks.push_back(at);
    return ticks;
  }
  const double step = tick_step(axis.high - axis.low, most);
  for (double at = std::ceil(axis.low / step - 1e-9) * step; at <= axis.high + step * 1e-9;
       at += step)
    ticks.push_back(at);
  return ticks;
}

std::string legend_of(const Plot& plot) {
  if (plot.curves.size() < 2) return "";
  std::string text;
  double at = left;
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    const Curve& curve = plot.curves[i];
    text += fmt::format(
        "<path class=\"{0}{1}\" d=\"M{2} {3}h22\" fill=\"none\" stroke-width=\"2.5\"/><text "
        "x=\"{4}\" y=\"{5}\">{6}</text>\n",
        inks[i % inks.size()], curve.dashed ? " dash" : "", coordinate(at), coordinate(height + 6),
        coordinate(at + 27), coordinate(height + 10), escaped_xml(curve.name));
    at += 27 + static_cast<double>(curve.name.size()) * letter_width + 20;
  }
  return text;
}

}  // namespace

std::string plot_picture(const Plot& plot) {
  Range across, up;
  for (const Curve& curve : plot.curves)
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
      across.cover(curve.points[i].first);
      up.cover(curve.points[i].second);
      if (curve.band.empty()) continue;
      up.cover(curve.band[i].first);
      up.cover(curve.band[i].second);
    }
  for (const Level& level : plot.levels) up.cover(level.y);
  for (const Mark& mark : plot.marks) {
    across.cover(mark.x);
    up.cover(mark.y);
  }
  const double legend = plot.curves.size() < 2 ? 0 : 22;
  std::string text = svg_head(width, height + legend, plot.title, plot.description);
  if (!across.seen() || !up.seen()) return text + "</svg>\n";
  if (plot.from_zero) up.cover(0);
  const double room = std::max((up.high - up.low) * 0.06, std::abs(up.high) * 1e-3 + 1e-12);
  Axis x{across.low, across.high, left, width - right, plot.log_x && across.low > 0};
  Axis y{plot.from_zero ? up.low : up.low - room, up.high + room, height - bottom, top, false};
  const double step = tick_step(y.high - y.low, 7);
  for (const double at : ticks_of(y, 7))
    text += fmt::format(
        "<path class=\"grid\" d=\"M{0} {1}H{2}\"/><text class=\"soft\" x=\"{3}\" y=\"{4}\" "
        "text-anchor=\"end\">{5}</text>\n",
        coordinate(left), coordinate(y(at)), coordinate(width - right), coordinate(left - 7),
        coordinate(y(at) + 4), tick_label(at, step));
  const std::vector<double> ticks = plot.x_ticks.empty() ? ticks_of(x, 9) : plot.x_ticks;
  const double x_step = tick_step(x.high - x.low, 9);
  double last = -1e9;
  for (const double at : ticks) {
    const std::string label = plot.x_text ? plot.x_text(at) : tick_label(at, x_step);
    const double wide = static_cast<double>(label.size()) * letter_width;
    text += fmt::format("<path class=\"grid\" d=\"M{0} {1}v5\"/>", coordinate(x(at)),
                        coordinate(height - bottom));
    if (x(at) - wide / 2 < last + 6) continue;  // no room: its tick alone
    last = x(at) + wide / 2;
    text += fmt::format("<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                        coordinate(x(at)), coordinate(height - bottom + 19), escaped_xml(label));
  }
  text += fmt::format(
      "<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n<text "
      "class=\"soft\" transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}"
      "</text>\n",
      coordinate((left + width - right) / 2), coordinate(height - 10), escaped_xml(plot.x_label),
      coordinate((top + height - bottom) / 2), escaped_xml(plot.y_label));
  Labels labels;
  for (const Level& level : plot.levels) {
    text += fmt::format("<path class=\"launch dash\" d=\"M{} {}H{}\" fill=\"none\"/>\n",
                        coordinate(left), coordinate(y(level.y)), coordinate(width - right));
    const double wide = static_cast<double>(level.text.size()) * letter_width;
    text += labels.place(width - right - wide / 2 - 4, y(level.y) - 5, level.text);
  }
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    const Curve& curve = plot.curves[i];
    const std::string_view ink = inks[i % inks.size()];
    if (!curve.band.empty())
      text += fmt::format(
          "<path class=\"band\" d=\"{}\" style=\"fill:var(--{});opacity:.16;stroke:none\"/>\n",
          band_of(curve, x, y), ink);
    text += fmt::format("<path class=\"curve {}{}\" d=\"{}\" style=\"stroke:var(--{})\"/>\n", ink,
                        curve.dashed ? " dash" : "", path_of(curve, x, y), ink);
    if (curve.points.size() <= 40)
      for (const auto& [at, value] : curve.points)
        text += fmt::format(
            "<circle cx=\"{}\" cy=\"{}\" r=\"3\" style=\"fill:var(--{})\"><title>{}: {} {}"
            "</title></circle>\n",
            coordinate(x(at)), coordinate(y(value)), ink,
            escaped_xml(plot.x_text ? plot.x_text(at) : fmt::format("{:g}", at)),
            fmt::format("{:.4g}", value), escaped_xml(plot.y_label));
  }
  for (const Mark& mark : plot.marks) {
    text += fmt::format(
        "<circle class=\"mark\" cx=\"{}\" cy=\"{}\" r=\"5\" style=\"fill:var(--paper);"
        "stroke:var(--hatch);stroke-width:2\"/>\n",
        coordinate(x(mark.x)), coordinate(y(mark.y)));
    labels.keep_off(x(mark.x) - 7, x(mark.x) + 7, y(mark.y) + 4);
  }
  for (const Mark& mark : plot.marks) text += labels.place(x(mark.x), y(mark.y) - 12, mark.text);
  return text + legend_of(plot) + "</svg>\n";
}

std::string heat_picture(const HeatMap& map) {
  constexpr double cell_height = 30;
  std::size_t longest = 4;
  for (const std::string& name : map.y) longest = std::max(longest, name.size());
  const double beside = std::min(240.0, 40 + static_cast<double>(longest) * letter_width);
  const auto columns = static_cast<double>(std::max<std::size_t>(1, map.x.size()));
  const double cell_width = std::clamp((1080 - beside) / columns, 46.0, 110.0);
  const double wide = beside + cell_width * columns + 10;
  const double high = 40 + cell_height * static_cast<double>(map.y.size()) + 40;
  Range values;
  for (const auto& row : map.values)
    for (const double value : row) values.cover(value);
  std::string text = svg_head(wide, high, map.title, map.description);
  text += fmt::format(
      "<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n<text "
      "class=\"soft\" transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">{}"
      "</text>\n",
      coordinate(beside + cell_width * columns / 2), coordinate(high - 10),
      escaped_xml(map.x_label),
      coordinate(30 + cell_height * static_cast<double>(map.y.size()) / 2),
      escaped_xml(map.y_label));
  for (std::size_t c = 0; c < map.x.size(); ++c)
    text += fmt::format("<text class=\"soft\" x=\"{}\" y=\"22\" text-anchor=\"middle\">{}</text>\n",
                        coordinate(beside + cell_width * (static_cast<double>(c) + 0.5)),
                        escaped_xml(map.x[c]));
  for (std::size_t r = 0; r < map.y.size(); ++r) {
    const double y = 30 + cell_height * static_cast<double>(r);
    text += fmt::format("<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
                        coordinate(beside - 8), coordinate(y + 19), escaped_xml(map.y[r]));
    for (std::size_t c = 0; c < map.x.size(); ++c) {
      const double value = map.values[r][c];
      const double x = beside + cell_width * static_cast<double>(c);
      if (!std::isfinite(value)) {
        text += fmt::format(
            "<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">-"
            "</text>\n",
            coordinate(x + cell_width / 2), coordinate(y + 19));
        continue;
      }
      // By the logarithm where values lie far apart.
      const bool apart = values.low > 0 && values.high > 8 * values.low;
      double share = values.high > values.low
                         ? apart ? std::log(value / values.low) / std::log(values.high / values.low)
                                 : (value - values.low) / (values.high - values.low)
                         : 0;
      if (map.low_is_good) share = 1 - share;
      const bool best = value == (map.low_is_good ? values.low : values.high);
      text += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" style=\"fill:var(--forward);"
          "opacity:{:.2f}\"/><text x=\"{}\" y=\"{}\" text-anchor=\"middle\"{}>{}</text>\n",
          coordinate(x + 1), coordinate(y + 1), coordinate(cell_width - 2),
          coordinate(cell_height - 2), 0.06 + 0.5 * share, coordinate(x + cell_width / 2),
          coordinate(y + 19), best ? " style=\"font-weight:700\"" : "",
          fmt::format("{:.4g}", value));
    }
  }
  return text + "</svg>\n";
}

}  // namespace ddpsim
