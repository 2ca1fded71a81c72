#include "tools/report/writers/chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "model/timeline/spans.hpp"
#include "tools/report/writers/text_width.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_cells = 72, least_cells = 20;
constexpr std::size_t stream_name = 13;  ///< columns "communication" takes

constexpr char letter_of(Operation operation) {
  switch (operation) {
    case Operation::forward:
      return 'F';
    case Operation::backward:
    case Operation::accumulate:
      return 'B';
    case Operation::optimizer:
      return 'O';
    case Operation::all_reduce:
    case Operation::broadcast:
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::all_to_all:
    case Operation::send_receive:
      return '=';
    case Operation::copy_in:
    case Operation::concatenate:
    case Operation::divide:
    case Operation::copy_out:
    case Operation::copy_to_host:
    case Operation::copy_to_device:
      return 'c';
    case Operation::cast:
    case Operation::correct:
    case Operation::pack:
    case Operation::draw:
    case Operation::multiply:
    case Operation::orthogonalize:
    case Operation::quantize:
    case Operation::dequantize:
    case Operation::select:
    case Operation::own_kernel:
    case Operation::gradient_hook:
    case Operation::module_hook:
      return 'h';
    case Operation::hook:
    case Operation::wait:
    case Operation::search_unused:
    case Operation::synchronize:
    case Operation::outside:
    case Operation::meet:
    case Operation::pause:
    case Operation::unit_hook:
      return ' ';
  }
  return ' ';
}

/// When the first rank has done all of its step.
Instant last_end(const Step& step) {
  Instant last{};
  for (const TaskTimes& times : step.rank().times) last = std::max(last, times.end);
  return last;
}

/// Marks cells in which the first rank is done and the step is not.
void mark_wait(const Step& step, std::int64_t cell, std::string& text) {
  const auto cell_of = [&](Instant at, bool up) {
    const std::int64_t ticks = at.time_since_epoch().count() + (up ? cell - 1 : 0);
    return std::min(text.size(), static_cast<std::size_t>(ticks / cell));
  };
  for (std::size_t i = cell_of(last_end(step), true); i < cell_of(step.times.end, false); ++i)
    if (text[i] == ' ') text[i] = '-';
}

enum class Line : std::uint8_t { compute, communication, host_copies };

constexpr Line line_of(StreamKind stream) {
  switch (stream) {
    case StreamKind::host:
    case StreamKind::compute:
    case StreamKind::side:
      return Line::compute;
    case StreamKind::communication:
      return Line::communication;
    case StreamKind::copies:
      return Line::host_copies;
  }
  return Line::compute;
}

/// Each cell shows what took most of its time; empty: nothing ever did.
std::string row(const Step& step, Duration scale, Line line, std::size_t width) {
  constexpr std::string_view letters = "FBO=ch";
  std::vector<std::array<std::int64_t, letters.size()>> cells(width);
  const std::int64_t cell =
      std::max<std::int64_t>(1, scale.count() / static_cast<std::int64_t>(width));
  const RankOfJob rank = step.rank();
  const std::vector<StreamKind> kinds = stream_kinds(rank);
  const auto& times = rank.times;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const program::Task& task = rank.program.tasks[i];
    if (line_of(kinds[task.stream]) != line || rank.is_part_of_another(task)) continue;
    const auto letter = letters.find(letter_of(operation_of(rank.job, task)));
    if (letter == std::string_view::npos) continue;
    std::int64_t at = times[i].start.time_since_epoch().count();
    const std::int64_t end = times[i].end.time_since_epoch().count();
    while (at < end) {
      const auto index = std::min<std::size_t>(width - 1, static_cast<std::size_t>(at / cell));
      const std::int64_t until =
          index + 1 == width ? end : std::min(end, (static_cast<std::int64_t>(index) + 1) * cell);
      cells[index][letter] += until - at;
      at = until;
    }
  }
  std::string text(width, ' ');
  for (std::size_t i = 0; i < width; ++i) {
    const auto most = std::max_element(cells[i].begin(), cells[i].end());
    std::int64_t busy = 0;
    for (const std::int64_t part : cells[i]) busy += part;
    if (busy * 4 >= cell)
      text[i] = letters[static_cast<std::size_t>(most - cells[i].begin())];
    else if (busy > 0)
      text[i] = '.';
  }
  if (line == Line::compute) mark_wait(step, cell, text);
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace

std::string timeline_chart(const std::vector<NamedStep>& steps, PageWidth page) {
  Duration scale{};
  std::size_t label = 0;
  for (const auto& [name, step] : steps) {
    scale = std::max(scale, step->times.end.time_since_epoch());
    label = std::max(label, display_width(name));
  }
  const std::size_t beside = stream_name + 2;  // a blank before the stream's name, one behind it
  std::size_t cells = most_cells;
  if (page && label + beside + cells > *page) {
    const std::size_t room = std::max(*page, beside + least_cells) - beside;
    label = std::min(label, room - least_cells);
    cells = std::min(most_cells, room - label);
  }
  std::string rows;
  bool hooks = false, waits = false;
  const auto add = [&](std::string_view name, std::string_view stream, const std::string& line) {
    rows += fmt::format("{} {:<{}} {}\n", padded(shortened(name, label), label), stream,
                        stream_name, line);
    hooks = hooks || line.find('h') != std::string::npos;
    waits = waits || line.find('-') != std::string::npos;
  };
  for (const auto& [name, step] : steps) {
    add(name, "compute", row(*step, scale, Line::compute, cells));
    add("", "communication", row(*step, scale, Line::communication, cells));
    const std::string copies = row(*step, scale, Line::host_copies, cells);
    if (!copies.empty()) add("", "host copies", copies);
  }
  const std::string legend = fmt::format(
      "one column is {}; F forward, B backward, O optimizer, c copy, = all-reduce, {}{}. mostly "
      "idle",
      to_string(scale / static_cast<std::int64_t>(cells)), hooks ? "h hook, " : "",
      waits ? "- rank 0 waits for the end of the step, " : "");
  if (!page || label + 16 + legend.size() <= *page)
    return std::string(label + 16, ' ') + legend + "\n" + rows;
  std::string text;
  for (const std::string& line : wrapped(legend, *page)) text += line + "\n";
  return text + rows;
}

}  // namespace ddpsim
