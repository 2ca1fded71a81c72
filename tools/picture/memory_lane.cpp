#include "tools/picture/memory_lane.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "tools/picture/svg.hpp"

namespace ddpsim {
namespace {

/// [kind] a colour of the style sheet
constexpr std::array<std::string_view, shown_memory_kinds.size()> colours{
    "launch", "optimizer", "collective", "backward", "forward", "hook", "copy"};

constexpr double lane_height = 44;
constexpr int columns = 240;  ///< pieces of all time

/// What is drawn from a column's begin on.
struct Column {
  std::int64_t begin = 0;  ///< in ticks
  ShownMemory memory;
};

std::vector<Column> columns_of(const std::vector<ShownMemory>& memory, Duration tick,
                               Duration all) {
  const Duration wide = std::max(tick, all / columns);
  const auto column_of = [&](const ShownMemory& point) {
    return point.at.time_since_epoch() / wide;
  };
  std::vector<Column> found;
  ShownMemory last;  // that is there when a column begins
  for (auto point = memory.begin(); point != memory.end();) {
    const std::int64_t column = column_of(*point);
    ShownMemory most = last;
    for (; point != memory.end() && column_of(*point) == column; ++point) {
      if (point->sum() > most.sum()) most = *point;
      last = *point;
    }
    found.push_back({column * wide / tick, most});
    if (point == memory.end() || column_of(*point) > column + 1)
      found.push_back({(column + 1) * wide / tick, last});
  }
  return found;
}

std::string text_of(Bytes size) {
  return fmt::format("{:.3g} GiB",
                     static_cast<double>(size.count) / static_cast<double>(GiB.count));
}

}  // namespace

MemoryLanes::MemoryLanes(const Scenario& scenario, const std::vector<NamedStep>& steps) {
  for (const NamedStep& named : steps) {
    Lane& lane = lanes_.emplace_back();
    lane.memory = shown_memory(scenario, *named.step, 0);
    lane.peak = std::ranges::max_element(lane.memory, {}, &ShownMemory::sum)->sum();
    lane.end = named.step->times.end;
    highest_ = std::max(highest_, lane.peak);
  }
}

double MemoryLanes::place(std::size_t step, double top) {
  lanes_[step].top = top;
  return top + lane_height;
}

std::string MemoryLanes::areas(Duration tick, Duration all) const {
  std::string text;
  for (const Lane& lane : lanes_) text += areas(lane, tick, all);
  return text;
}

std::string MemoryLanes::areas(const Lane& lane, Duration tick, Duration all) const {
  const std::vector<Column> drawn = columns_of(lane.memory, tick, all);
  const double bottom = lane.top + lane_height;
  const double per_byte = lane_height / std::max(1.0, static_cast<double>(highest_.count));
  const std::int64_t end = lane.end.time_since_epoch() / tick;
  std::string text = "<g class=\"memory\">\n";
  // Each reaches down to the bottom, and those below are drawn over it.
  for (std::size_t kind = shown_memory_kinds.size(); kind-- > 0;) {
    Bytes most;
    for (const ShownMemory& each : lane.memory) most = std::max(most, each.bytes[kind]);
    if (most <= Bytes{}) continue;
    std::string points, before = coordinate(bottom);
    for (const Column& column : drawn) {
      Bytes below;
      for (std::size_t k = 0; k <= kind; ++k) below += column.memory.bytes[k];
      const std::string now = coordinate(bottom - static_cast<double>(below.count) * per_byte);
      if (now == before && !points.empty()) continue;
      points += fmt::format("{0},{1} {0},{2} ", std::min(column.begin, end), before, now);
      before = now;
    }
    points += fmt::format("{0},{1} {0},{2}", end, before, coordinate(bottom));
    text += fmt::format(
        "<polygon points=\"{}\" style=\"fill:var(--{})\"><title>memory: {}, at most {} of "
        "{}</title></polygon>\n",
        points, colours[kind], shown_memory_kinds[kind], text_of(most), text_of(lane.peak));
  }
  return text + "</g>\n";
}

std::string MemoryLanes::labels(double right) const {
  std::string text;
  for (const Lane& lane : lanes_)
    text += fmt::format(
        "<text class=\"soft\" x=\"{0}\" y=\"{1}\" text-anchor=\"end\" "
        "style=\"font-size:11px\">memory</text><text class=\"soft\" x=\"{0}\" y=\"{2}\" "
        "text-anchor=\"end\" style=\"font-size:11px\">{3}</text>\n",
        coordinate(right), coordinate(lane.top + lane_height / 2 - 3),
        coordinate(lane.top + lane_height / 2 + 10), text_of(lane.peak));
  return text;
}

std::vector<MemoryLanes::Key> MemoryLanes::legend(bool packed) {
  std::vector<Key> keys;
  for (std::size_t kind = 0; kind < colours.size(); ++kind) {
    const std::string_view name = shown_memory_kinds[kind];
    keys.push_back({fmt::format("{}{}", kind == 0 ? "memory, from below: " : "",
                                packed && name == "buckets" ? "packed gradients" : name),
                    fmt::format("<rect y=\"7\" width=\"13\" height=\"10\" "
                                "style=\"fill:var(--{})\"/>",
                                colours[kind])});
  }
  return keys;
}

}  // namespace ddpsim
