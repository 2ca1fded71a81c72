#include "tools/picture/plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "model/parallel/strategy.hpp"
#include "tools/picture/svg.hpp"

namespace ddpsim {
namespace {

constexpr double whole_page = 1110, half_page = 555;
constexpr double height = 360, left = 74, right = 24, top = 20, bottom = 52;
constexpr double letter_width = 6.4, row_height = 18;
constexpr std::array<std::string_view, 6> inks{"forward", "collective", "optimizer",
                                               "hook",    "backward",   "copy"};

std::string_view ink_of(const Curve& curve, std::size_t number) {
  return curve.ink.empty() ? inks[number % inks.size()] : std::string_view(curve.ink);
}

/// "20000", "500k", "20M"
std::string short_number(double value) {
  if (value >= 1e6) return fmt::format("{:.6g}M", value / 1e6);
  return value >= 1e5 ? fmt::format("{:.6g}k", value / 1e3) : fmt::format("{:.6g}", value);
}

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

/// A piece of a curve, in pixels.
struct Segment {
  double x1, y1, x2, y2;
};

/// Labels of points keep off one another, and off curves where there is room: each takes the
/// nearest row that is free there.
class Labels {
 public:
  explicit Labels(double width) : width_(width) {}
  std::string place(double x, double y, std::string_view text) {
    const double wide = static_cast<double>(text.size()) * letter_width;
    const double from =
        std::clamp(x - wide / 2, left + 2, std::max(left + 2, width_ - right - wide));
    const double at = free_row(from, from + wide, y);
    boxes_.push_back({from, from + wide, at});
    std::string label = fmt::format("<text class=\"pointed\" x=\"{}\" y=\"{}\">{}</text>\n",
                                    coordinate(from), coordinate(at), escaped_xml(text));
    if (std::abs(at - y) < row_height) return label;
    // Far from what it names.
    const bool above = at < y;
    return fmt::format("<path class=\"leader\" d=\"M{0} {1}V{2}\"/>\n", coordinate(x),
                       coordinate(above ? at + 4 : at - 11), coordinate(above ? y + 5 : y + 19)) +
           label;
  }
  void keep_off(double from, double to, double y) { boxes_.push_back({from, to, y}); }
  void keep_off(const Segment& segment) { segments_.push_back(segment); }

 private:
  struct Box {
    double from, to, y;
  };

  double free_row(double from, double to, double y) const {
    double not_taken = y;
    bool any = false;
    for (int turn = 0; turn < 28; ++turn) {
      const double at = y + (turn + 1) / 2 * row_height * (turn % 2 == 0 ? 1 : -1);
      if (at <= top + 8 || at >= height - bottom - 4 || is_taken(from, to, at)) continue;
      if (!any) not_taken = at;
      any = true;
      if (!crosses_curve(from, to, at)) return at;
    }
    return not_taken;
  }
  bool is_taken(double from, double to, double y) const {
    return std::any_of(boxes_.begin(), boxes_.end(), [&](const Box& box) {
      return std::abs(box.y - y) < row_height - 3 && box.from < to && from < box.to;
    });
  }
  bool crosses_curve(double from, double to, double y) const {
    const double above = y - 13, below = y + 5;
    return std::any_of(segments_.begin(), segments_.end(), [&](const Segment& each) {
      if (each.x2 < from || each.x1 > to) return false;
      // The heights of the piece where it is within the label's columns.
      const auto height_at = [&](double x) {
        if (each.x2 == each.x1) return each.y1;
        return each.y1 + (each.y2 - each.y1) * (std::clamp(x, each.x1, each.x2) - each.x1) /
                             (each.x2 - each.x1);
      };
      const bool upright = each.x1 == each.x2;
      const double one = upright ? each.y1 : height_at(from),
                   other = upright ? each.y2 : height_at(to);
      return std::max(one, other) > above && std::min(one, other) < below;
    });
  }

  double width_;
  std::vector<Box> boxes_;
  std::vector<Segment> segments_;
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

/// 1, 2 and 5 times the powers of ten between two values; the powers alone where there are many.
std::vector<double> decades(double low, double high) {
  std::vector<double> all, powers;
  for (double power = std::pow(10.0, std::floor(std::log10(low))); power <= high; power *= 10) {
    if (power >= low) powers.push_back(power);
    for (const double times : {1.0, 2.0, 5.0})
      if (power * times >= low * (1 - 1e-9) && power * times <= high * (1 + 1e-9))
        all.push_back(power * times);
  }
  constexpr std::size_t most = 8;
  return all.size() > most ? powers : all;
}

/// What the colours mean, below the plot, on as many rows as it takes.
struct Legend {
  std::string text;
  double height = 0;
};

Legend legend_of(const Plot& plot, double width) {
  if (plot.curves.size() < 2) return {};
  Legend legend;
  double x = left, y = height + 6;
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    const Curve& curve = plot.curves[i];
    const double wide = 27 + static_cast<double>(curve.name.size()) * letter_width + 16;
    if (x > left && x + wide > width) {
      x = left;
      y += row_height;
    }
    legend.text += fmt::format(
        "<path class=\"{0}{1}\" d=\"M{2} {3}h22\" fill=\"none\" stroke-width=\"2.5\"/><text "
        "x=\"{4}\" y=\"{5}\">{6}</text>\n",
        ink_of(curve, i), curve.dashed ? " dash" : "", coordinate(x), coordinate(y),
        coordinate(x + 27), coordinate(y + 4), escaped_xml(curve.name));
    x += wide;
  }
  legend.height = y + 16 - height;
  return legend;
}

/// Draws one plot.
class PlotPicture {
 public:
  explicit PlotPicture(const Plot& plot)
      : plot_(plot), width_(plot.half ? half_page : whole_page), labels_(width_) {
    for (const Curve& curve : plot.curves)
      for (std::size_t i = 0; i < curve.points.size(); ++i) {
        across_.cover(curve.points[i].first);
        up_.cover(curve.points[i].second);
        if (curve.band.empty()) continue;
        up_.cover(curve.band[i].first);
        up_.cover(curve.band[i].second);
      }
    for (const Level& level : plot.levels) up_.cover(level.y);
    for (const Zone& zone : plot.zones) up_.cover(zone.low);
    for (const Mark& mark : plot.marks) {
      across_.cover(mark.x);
      up_.cover(mark.y);
    }
  }

  std::string svg() {
    const Legend legend = legend_of(plot_, width_);
    std::string text = svg_head(width_, height + legend.height, plot_.title, plot_.description);
    if (!across_.seen() || !up_.seen()) return text + "</svg>\n";
    set_axes();
    text += zones();
    text += upright_axis();
    text += level_axis();
    for (const Curve& each : plot_.curves) keep_off(each);
    text += levels();
    for (std::size_t i = 0; i < plot_.curves.size(); ++i)
      text += curve(plot_.curves[i], ink_of(plot_.curves[i], i));
    text += marks();
    return text + legend.text + "</svg>\n";
  }

 private:
  void set_axes() {
    if (plot_.from_zero) up_.cover(0);
    x_ = {across_.low, across_.high, left, width_ - right, plot_.log_x && across_.low > 0};
    if (plot_.log_y && up_.low > 0) {
      y_ = {up_.low / 1.15, up_.high * 1.15, height - bottom, top, true};
      return;
    }
    const double room = std::max((up_.high - up_.low) * 0.06, std::abs(up_.high) * 1e-3 + 1e-12);
    y_ = {plot_.from_zero ? up_.low : up_.low - room, up_.high + room, height - bottom, top, false};
  }

  void keep_off(const Curve& curve) {
    for (std::size_t i = 1; i < curve.points.size(); ++i) {
      const double x1 = x_(curve.points[i - 1].first), y1 = y_(curve.points[i - 1].second);
      const double x2 = x_(curve.points[i].first), y2 = y_(curve.points[i].second);
      if (curve.stairs) {
        labels_.keep_off({x1, y1, x2, y1});
        labels_.keep_off({x2, y1, x2, y2});
      } else {
        labels_.keep_off({x1, y1, x2, y2});
      }
    }
  }

  std::string zones() const {
    std::string text;
    for (const Zone& zone : plot_.zones) {
      const double from = y_(std::min(zone.high, y_.high)), to = y_(std::max(zone.low, y_.low));
      if (to <= from) continue;
      text += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
          "style=\"fill:var(--good);opacity:.13\"/>\n",
          coordinate(left), coordinate(from), coordinate(width_ - right - left),
          coordinate(to - from));
    }
    return text;
  }

  std::string upright_axis() const {
    const double step = tick_step(y_.high - y_.low, 7);
    std::string text;
    for (const double at : y_.log ? decades(y_.low, y_.high) : ticks_of(y_, 7))
      text += fmt::format(
          "<path class=\"grid\" d=\"M{0} {1}H{2}\"/><text class=\"soft\" x=\"{3}\" y=\"{4}\" "
          "text-anchor=\"end\">{5}</text>\n",
          coordinate(left), coordinate(y_(at)), coordinate(width_ - right), coordinate(left - 7),
          coordinate(y_(at) + 4), y_.log ? short_number(at) : tick_label(at, step));
    return text + fmt::format(
                      "<text class=\"soft\" transform=\"translate(16 {}) rotate(-90)\" "
                      "text-anchor=\"middle\">{}</text>\n",
                      coordinate((top + height - bottom) / 2), escaped_xml(plot_.y_label));
  }

  std::string level_axis() const {
    const std::vector<double> ticks = plot_.x_ticks.empty() ? ticks_of(x_, 9) : plot_.x_ticks;
    const double step = tick_step(x_.high - x_.low, 9);
    double last = -1e9;
    std::string text;
    for (const double at : ticks) {
      const std::string label = plot_.x_text ? plot_.x_text(at) : tick_label(at, step);
      const double wide = static_cast<double>(label.size()) * letter_width;
      text += fmt::format("<path class=\"grid\" d=\"M{0} {1}v5\"/>", coordinate(x_(at)),
                          coordinate(height - bottom));
      if (x_(at) - wide / 2 < last + 6) continue;  // no room: its tick alone
      last = x_(at) + wide / 2;
      text +=
          fmt::format("<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                      coordinate(std::min(x_(at), width_ - wide / 2)),
                      coordinate(height - bottom + 19), escaped_xml(label));
    }
    return text +
           fmt::format("<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       coordinate((left + width_ - right) / 2), coordinate(height - 10),
                       escaped_xml(plot_.x_label));
  }

  std::string levels() {
    std::string text;
    for (const Level& level : plot_.levels) {
      text += fmt::format("<path class=\"launch dash\" d=\"M{} {}H{}\" fill=\"none\"/>\n",
                          coordinate(left), coordinate(y_(level.y)), coordinate(width_ - right));
      text += at_the_end(level.text, y_(level.y) - 5);
    }
    for (const Zone& zone : plot_.zones)
      text += at_the_start(zone.text, y_(std::min(zone.high, y_.high)) + 14);
    return text;
  }

  std::string at_the_end(const std::string& text, double y) {
    const double wide = static_cast<double>(text.size()) * letter_width;
    return labels_.place(width_ - right - wide / 2 - 4, y, text);
  }
  std::string at_the_start(const std::string& text, double y) {
    const double wide = static_cast<double>(text.size()) * letter_width;
    return labels_.place(left + wide / 2 + 6, y, text);
  }

  std::string curve(const Curve& curve, std::string_view ink) const {
    std::string text;
    if (!curve.band.empty())
      text += fmt::format(
          "<path class=\"band\" d=\"{}\" style=\"fill:var(--{});opacity:.16;stroke:none\"/>\n",
          band_of(curve, x_, y_), ink);
    text += fmt::format("<path class=\"curve {}{}\" d=\"{}\" style=\"stroke:var(--{})\"/>\n", ink,
                        curve.dashed ? " dash" : "", path_of(curve, x_, y_), ink);
    constexpr std::size_t most_points = 40;
    if (curve.points.size() > most_points) return text;
    for (const auto& [at, value] : curve.points)
      text += fmt::format(
          "<circle cx=\"{}\" cy=\"{}\" r=\"3\" style=\"fill:var(--{})\"><title>{}, {}: {} {}"
          "</title></circle>\n",
          coordinate(x_(at)), coordinate(y_(value)), ink, escaped_xml(curve.name),
          escaped_xml(plot_.x_text ? plot_.x_text(at) : fmt::format("{:g}", at)),
          fmt::format("{:.4g}", value), escaped_xml(plot_.y_label));
    return text;
  }

  std::string marks() {
    std::string text;
    for (const Mark& mark : plot_.marks) {
      text += fmt::format(
          "<circle class=\"mark\" cx=\"{}\" cy=\"{}\" r=\"5\" style=\"fill:var(--paper);"
          "stroke:var(--hatch);stroke-width:2\"/>\n",
          coordinate(x_(mark.x)), coordinate(y_(mark.y)));
      labels_.keep_off(x_(mark.x) - 7, x_(mark.x) + 7, y_(mark.y) + 4);
    }
    for (const Mark& mark : plot_.marks)
      text += labels_.place(x_(mark.x), y_(mark.y) - 12, mark.text);
    return text;
  }

  const Plot& plot_;
  double width_;
  Range across_, up_;
  Axis x_, y_;
  Labels labels_;
};

std::size_t letters_in(double room) {
  return static_cast<std::size_t>(std::max(4.0, room / letter_width));
}

/// Where the parts of a heat map lie.
struct HeatFrame {
  double beside = 0, cell = 0, columns = 0;
  double width() const { return beside + cell * columns + 10; }
};

HeatFrame frame_of(const HeatMap& map) {
  constexpr double least = 46, most = 110;
  std::size_t longest = 4;
  for (const std::string& name : map.y) longest = std::max(longest, name.size());
  HeatFrame frame;
  frame.beside = std::min(240.0, 24 + static_cast<double>(longest) * letter_width);
  frame.columns = static_cast<double>(std::max<std::size_t>(1, map.x.size()));
  const double of_half = (half_page - 10 - frame.beside) / frame.columns;
  frame.cell = of_half >= least
                   ? std::min(of_half, most)
                   : std::clamp((whole_page - 10 - frame.beside) / frame.columns, least, most);
  return frame;
}

}  // namespace

std::string plot_picture(const Plot& plot) {
  return PlotPicture(plot).svg();
}

std::string ink_of_strategy(const std::string& name) {
  const std::optional<Strategy> strategy = strategy_named(name);
  if (!strategy) return "";
  if (*strategy == Strategy::none) return "launch";
  return std::string(inks[(static_cast<std::size_t>(*strategy) - 1) % inks.size()]);
}

bool is_half(const HeatMap& map) {
  return frame_of(map).width() <= half_page;
}

std::string heat_picture(const HeatMap& map) {
  constexpr double cell_height = 30, above = 28;
  const HeatFrame frame = frame_of(map);
  const double beside = frame.beside, cell_width = frame.cell;
  const double below = above + cell_height * static_cast<double>(map.y.size());
  Range values;
  for (const auto& row : map.values)
    for (const double value : row) values.cover(value);
  Range scale = values;
  if (map.least != map.most) scale = {map.least, map.most};
  // By the logarithm where values lie far apart; four digits of the largest.
  const bool apart = scale.low > 0 && scale.high > 8 * scale.low;
  const int digits =
      values.seen() && values.high > 0
          ? std::clamp(3 - static_cast<int>(std::floor(std::log10(values.high))), 0, 6)
          : 0;
  std::string text = svg_head(frame.width(), below + 46, map.title, map.description);
  text += fmt::format(
      "<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n<text "
      "class=\"soft\" x=\"4\" y=\"18\">{}</text>\n",
      coordinate(beside + cell_width * frame.columns / 2), coordinate(below + 38),
      escaped_xml(map.x_label), escaped_xml(map.y_label));
  for (std::size_t c = 0; c < map.x.size(); ++c)
    text += fmt::format("<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                        coordinate(beside + cell_width * (static_cast<double>(c) + 0.5)),
                        coordinate(below + 17),
                        escaped_xml(shortened(map.x[c], letters_in(cell_width))));
  for (std::size_t r = 0; r < map.y.size(); ++r) {
    const double y = above + cell_height * static_cast<double>(r);
    text += fmt::format("<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
                        coordinate(beside - 8), coordinate(y + 19),
                        escaped_xml(shortened(map.y[r], letters_in(beside - 12))));
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
      double share = scale.high > scale.low
                         ? apart ? std::log(value / scale.low) / std::log(scale.high / scale.low)
                                 : (value - scale.low) / (scale.high - scale.low)
                         : 0;
      if (map.low_is_good) share = 1 - share;
      const bool best = value == (map.low_is_good ? values.low : values.high);
      text += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" style=\"fill:var(--forward);"
          "opacity:{:.2f}\"/><text x=\"{}\" y=\"{}\" text-anchor=\"middle\"{}>{:.{}f}</text>\n",
          coordinate(x + 1), coordinate(y + 1), coordinate(cell_width - 2),
          coordinate(cell_height - 2), 0.06 + 0.5 * share, coordinate(x + cell_width / 2),
          coordinate(y + 19), best ? " style=\"font-weight:700\"" : "", value, digits);
    }
  }
  return text + "</svg>\n";
}

}  // namespace ddpsim
