#include "tools/picture/timeline_picture.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "model/base/index.hpp"
#include "model/base/printable.hpp"
#include "model/timeline/metrics.hpp"
#include "model/timeline/spans.hpp"
#include "model/timeline/units.hpp"
#include "tools/picture/memory_lane.hpp"
#include "tools/picture/svg.hpp"

namespace ddpsim {
namespace {

constexpr double left = 132, time_width = 960, right = 18;
constexpr double head_height = 26, axis_height = 24, legend_row = 18;
constexpr double host_height = 9, stream_height = 20, aside_height = 12, bucket_height = 11;
constexpr double lane_gap = 3;
constexpr std::size_t most_bucket_rows = 6;
constexpr double letter_width = 6;  ///< of a label within a bar, about

// Bars that are less than so many pixels wide, and whose gaps are at most so small a part of them,
// are drawn as one.
constexpr double narrow_bar = 1.5;
constexpr std::int64_t least_gap = 16;

/// What a bar is drawn as: a class of the style sheet.
enum class Paint : std::uint8_t { forward, backward, optimizer, copy, collective, hook, launch };
constexpr std::array<std::string_view, 7> paint_names{"forward",    "backward", "optimizer", "copy",
                                                      "collective", "hook",     "launch"};
constexpr std::array<std::string_view, 7> paint_legend{
    "forward", "backward", "optimizer", "copy", "collective", "hook", "host: launch, wait"};

Paint paint_of(Operation operation) {
  switch (operation) {
    case Operation::forward:
      return Paint::forward;
    case Operation::backward:
    case Operation::accumulate:
      return Paint::backward;
    case Operation::optimizer:
      return Paint::optimizer;
    case Operation::copy_in:
    case Operation::concatenate:
    case Operation::divide:
    case Operation::copy_out:
    case Operation::copy_to_host:
    case Operation::copy_to_device:
      return Paint::copy;
    case Operation::all_reduce:
    case Operation::broadcast:
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::all_to_all:
    case Operation::send_receive:
      return Paint::collective;
    case Operation::gradient_hook:
    case Operation::module_hook:
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
      return Paint::hook;
    case Operation::hook:
    case Operation::wait:
    case Operation::search_unused:
    case Operation::synchronize:
    case Operation::outside:
    case Operation::meet:
    case Operation::pause:
    case Operation::unit_hook:
      break;
  }
  return Paint::launch;
}

/// In place of a detail: the host launches the task of this name.
constexpr std::int32_t is_launch = -2;

/// One piece on a lane.
struct Bar {
  Instant start{}, end{};
  Paint paint = Paint::launch;
  std::int32_t name = -1, detail = -1, why = -1;  ///< numbers of texts; detail: or is_launch
};

/// Pieces of time: from, to.
using Times = std::vector<std::pair<Instant, Instant>>;

struct Lane {
  std::string label;
  std::size_t step = 0;
  double top = 0, height = 0;
  std::vector<Bar> bars;  ///< in order, none within another
  Times exposed;          ///< no kernel runs while a collective is under way
  Times waiting;          ///< likewise while one cannot begin yet
  Times ended;            ///< rank 0 is done, and the step is not
};

/// Do some steps send units, and none of them buckets?
bool has_units_alone(const std::vector<NamedStep>& steps) {
  bool units = false;
  for (const NamedStep& each : steps) {
    if (each.step->job().groups.empty()) continue;
    if (!has_units(each.step->job())) return false;
    units = true;
  }
  return units;
}

void append_number(std::string& text, std::int64_t number) {
  const fmt::format_int digits(number);
  text.append(digits.data(), digits.size());
}

/// Appends a JSON string that is safe within an element of HTML: nothing in it ends the element.
void append_quoted(std::string& json, std::string_view text) {
  json += '"';
  for (const char c : printable(text)) {
    if (c == '<') {
      json += "\\u003c";
      continue;
    }
    if (c == '"' || c == '\\') json += '\\';
    json += c;
  }
  json += '"';
}

/// Texts that many tasks share, each once.
class Texts {
 public:
  std::int32_t number_of(std::string text) {
    const auto [at, is_new] = numbers_.try_emplace(std::move(text), size_);
    if (is_new) {
      ++size_;
      texts_.push_back(&at->first);
    }
    return at->second;
  }
  /// A list of numbers and strings in turn: how much of the text before a text begins with, and
  /// what follows.
  void append_to(std::string& json) const {
    json += '[';
    std::string before;
    for (const std::string* each : texts_) {
      std::string text = printable(*each);
      const auto same = [](char a, char b) { return a == b && a > 0; };  // one of ASCII
      const auto end = std::mismatch(text.begin(), text.end(), before.begin(), before.end(), same);
      const auto shared = end.first - text.begin();
      if (each != texts_.front()) json += ',';
      append_number(json, shared);
      json += ',';
      append_quoted(json, std::string_view(text).substr(static_cast<std::size_t>(shared)));
      before = std::move(text);
    }
    json += ']';
  }
  const std::string& operator[](std::int32_t number) const {
    return *texts_[static_cast<std::size_t>(number)];
  }

 private:
  std::unordered_map<std::string, std::int32_t> numbers_;
  std::vector<const std::string*> texts_;
  std::int32_t size_ = 0;
};

/// What the last of its conditions was, of a task whose stream stood still before it.
std::string why_it_waited(const Scenario& scenario, const Step& step, const RankOfJob& rank,
                          std::uint32_t index) {
  const TaskTimes& at = rank.times[index];
  const program::Task& task = rank.program.tasks[index];
  Instant latest = at.enqueued;
  std::string why = "the host's launch";
  for (const std::uint32_t other : rank.program.waits_for(index)) {
    const program::Task& before = rank.program.tasks[other];
    if (before.stream == task.stream || rank.times[other].end <= latest) continue;
    latest = rank.times[other].end;
    why = task_label(scenario, step, before);
  }
  const Duration more = at.start - latest;
  if (rank.communicates(task) && more > std::chrono::nanoseconds(100))
    why = "the slowest rank, or the hand-over to its stream";
  return "waited for " + why;
}

/// Draws one picture: lanes are laid out, then written as SVG and as JSON.
class Timelines {
 public:
  Timelines(const Scenario& scenario, const std::vector<NamedStep>& steps, std::string_view id)
      : scenario_(scenario), steps_(steps), id_(id), memory_(scenario, steps) {
    for (const NamedStep& named : steps)
      end_ = std::max(end_, named.step->times.end.time_since_epoch());
    tick_ = Duration{1000};  // a nanosecond
    while (end_ / tick_ > 9'999'999) tick_ *= 10;
    double top = axis_height;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      heads_.push_back(top);
      top += head_height;
      for (Lane& lane : lanes_of(i)) {
        lane.top = top;
        top += lane.height + lane_gap;
        lanes_.push_back(std::move(lane));
      }
      top = memory_.place(i, top) + 8;
    }
    bottom_ = top;
  }

  std::string svg() const;
  /// An object without its end.
  std::string frame() const;
  std::string json() const;

 private:
  std::vector<Lane> lanes_of(std::size_t index);
  std::vector<Lane> bucket_lanes(std::size_t index);
  Bar bar_of(const Step& step, const RankOfJob& rank, const Span& span, Instant stream_free);
  /// The number of what is said of a task's work.
  std::int32_t detail_of(const RankOfJob& rank, const program::Task& task);
  static void hatch(const Step& step, const RankOfJob& rank, Lane& kernels);
  /// What the colours mean, below the lanes, and its height.
  std::pair<std::string, double> legend() const;
  std::string bars_of(const Lane& lane) const;
  std::string labels_of(const Lane& lane) const;
  void append_lane(std::string& json, const Lane& lane) const;

  std::int64_t ticks(Instant at) const { return at.time_since_epoch() / tick_; }
  double pixel(Instant at) const {
    return end_ == Duration::zero() ? 0 : in_ms(at) / in_ms(end_) * time_width;
  }

  const Scenario& scenario_;
  const std::vector<NamedStep>& steps_;
  std::string id_;  ///< what it refers to within itself is named by it
  MemoryLanes memory_;
  Duration end_{}, tick_{};
  Texts names_, details_;
  std::vector<std::int32_t> detail_of_work_;  ///< of the step whose lanes are made; -1: not yet
  std::vector<double> heads_;
  std::vector<Lane> lanes_;
  double bottom_ = 0;
};

Bar Timelines::bar_of(const Step& step, const RankOfJob& rank, const Span& span,
                      Instant stream_free) {
  const program::Task& task = rank.program.tasks[span.task];
  const bool launches = span.stream == 0 && task.stream != 0;
  Bar bar{span.start, span.end, launches ? Paint::launch : paint_of(operation_of(rank.job, task))};
  const program::Origin& origin = rank.origin_of(task);
  const bool of_unit = origin.group != nobody && !rank.job.groups[at(origin.group)].name.empty();
  if (of_unit && bar.paint == Paint::hook)
    bar.paint = Paint::copy;  // it packs, copies out or casts
  bar.name = names_.number_of(task_label(scenario_, step, task));
  if (launches) {
    bar.detail = is_launch;
    return bar;
  }
  bar.detail = detail_of(rank, task);
  if (span.stream != 0 && span.start - stream_free > tick_)
    bar.why = details_.number_of(why_it_waited(scenario_, step, rank, span.task));
  return bar;
}

std::int32_t Timelines::detail_of(const RankOfJob& rank, const program::Task& task) {
  const Work& work = rank.job.works[task.work];
  if (!work.computes() && !rank.communicates(task)) return -1;
  std::int32_t& known = detail_of_work_[task.work];
  if (known >= 0) return known;
  std::string detail = describe(work);
  const CollectiveChoice choice = rank.detail_of(task).choice;
  if (const std::string how = choice_text(choice); !how.empty()) detail += "; " + how;
  return known = details_.number_of(std::move(detail));
}

/// When rank 0 has come to a collective: it is launched, and what it waits for has ended.
Instant arrival_at(const RankOfJob& rank, std::size_t collective) {
  Instant arrival = rank.times[collective].enqueued;
  for (const std::uint32_t other : rank.program.waits_for(collective))
    arrival = std::max(arrival, rank.times[other].end);
  return std::min(arrival, rank.times[collective].start);
}

/// What is in `wanted` and not in `busy`; both are in order.
Times without(const Times& wanted, const Times& busy) {
  Times rest;
  auto next = busy.begin();
  Instant done{};
  for (auto [from, to] : wanted) {
    from = std::max(from, done);
    while (from < to) {
      while (next != busy.end() && next->second <= from) ++next;
      if (next == busy.end() || next->first >= to) {
        rest.emplace_back(from, to);
        from = to;
      } else {
        if (next->first > from) rest.emplace_back(from, next->first);
        from = next->second;
      }
    }
    done = std::max(done, to);
  }
  return rest;
}

/// Hatches where no kernel runs while a collective is under way or cannot begin yet.
void Timelines::hatch(const Step& step, const RankOfJob& rank, Lane& kernels) {
  Times busy;
  for (const Bar& bar : kernels.bars) {
    if (bar.paint == Paint::launch) continue;
    if (!busy.empty() && bar.start <= busy.back().second)
      busy.back().second = std::max(busy.back().second, bar.end);
    else
      busy.emplace_back(bar.start, bar.end);
  }
  Times under_way, coming;
  for (std::size_t i = 0; i < rank.times.size(); ++i) {
    if (!rank.communicates(rank.program.tasks[i])) continue;
    under_way.emplace_back(rank.times[i].start, rank.times[i].end);
    coming.emplace_back(arrival_at(rank, i), rank.times[i].start);
  }
  std::sort(under_way.begin(), under_way.end());
  std::sort(coming.begin(), coming.end());
  kernels.exposed = without(under_way, busy);
  kernels.waiting = without(without(coming, busy), under_way);
  Instant done{};
  for (const TaskTimes& each : rank.times) done = std::max(done, each.end);
  if (done < step.times.end) kernels.ended.emplace_back(done, step.times.end);
}

std::vector<Lane> Timelines::lanes_of(std::size_t index) {
  const Step& step = *steps_[index].step;
  const RankOfJob rank = step.rank();
  const std::vector<StreamKind> kinds = stream_kinds(rank);
  detail_of_work_.assign(rank.job.works.size(), -1);
  // Who launches nothing runs the kernels itself.
  const bool on_host = scenario_.cluster.device.synchronous;
  const auto height_of = [&](std::uint8_t stream) {
    switch (kinds[stream]) {
      case StreamKind::host:
        return on_host ? stream_height : host_height;
      case StreamKind::compute:
      case StreamKind::communication:
        return stream_height;
      case StreamKind::copies:
      case StreamKind::side:
        return aside_height;
    }
    return stream_height;
  };
  const auto computes = std::ranges::find(kinds, StreamKind::compute);
  const auto runs_kernels =
      static_cast<std::uint8_t>(on_host || computes == kinds.end() ? 0 : computes - kinds.begin());
  using Row = std::pair<std::uint8_t, std::size_t>;  // collectives may lie side by side
  std::map<Row, Lane> lanes;
  const auto lane_at = [&](std::uint8_t stream, std::size_t row) -> Lane& {
    Lane& lane = lanes[{stream, row}];
    if (lane.height == 0) {
      const std::string& name = rank.job.streams[stream].name;
      lane.label = row == 0 ? name : fmt::format("{} {}", name, row + 1);
      lane.step = index;
      lane.height = height_of(stream);
    }
    return lane;
  };
  lane_at(runs_kernels, 0);
  for (const Span& span : spans_of(rank)) {
    std::size_t row = 0;
    if (kinds[span.stream] == StreamKind::communication)
      while (true) {
        const Lane& lane = lane_at(span.stream, row);
        if (lane.bars.empty() || lane.bars.back().end <= span.start) break;
        ++row;
      }
    Lane& lane = lane_at(span.stream, row);
    const Instant free = lane.bars.empty() ? Instant{} : lane.bars.back().end;
    lane.bars.push_back(bar_of(step, rank, span, free));
  }
  hatch(step, rank, lanes.at({runs_kernels, 0}));
  std::vector<Lane> result;
  for (auto& [key, lane] : lanes)
    if (!lane.bars.empty() || key.first == runs_kernels) result.push_back(std::move(lane));
  for (Lane& lane : bucket_lanes(index)) result.push_back(std::move(lane));
  return result;
}

/// From the first gradient of each bucket to the end of its all-reduce; buckets that lie beside one
/// another in time stand below one another.
std::vector<Lane> Timelines::bucket_lanes(std::size_t index) {
  const Step& step = *steps_[index].step;
  if (step.training.strategy != Strategy::bucketed) return {};
  const RankOfJob rank = step.rank();
  const std::vector<program::ParameterGroup>& groups = rank.job.groups;
  const std::vector<std::int32_t> bucket_of =
      groups_of_parameters(rank.job, scenario_.workload.parameters.size());
  std::vector<std::optional<Instant>> first(groups.size());
  for (std::size_t i = 0; i < rank.times.size(); ++i) {
    const program::Task& task = rank.program.tasks[i];
    const std::int32_t parameter = rank.origin_of(task).parameter;
    if (parameter == nobody || operation_of(rank.job, task) != Operation::copy_in) continue;
    const std::int32_t bucket = bucket_of[at(parameter)];
    if (bucket == nobody) continue;
    const Instant start = rank.times[i].start;
    std::optional<Instant>& earliest = first[at(bucket)];
    if (!earliest || start < *earliest) earliest = start;
  }
  // The figures of a measured step are medians of many; these are of the one that is drawn.
  const std::vector<BucketTimes> buckets =
      measure(step.job(), step.times, step.ranks.front()).buckets;
  std::vector<Lane> rows;
  Instant before{};  // without copies a bucket fills from when the one before it was full
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const BucketTimes& bucket = buckets[b];
    if (bucket.end <= bucket.start) continue;
    const Instant ready = bucket.ready, begun = std::min(first[b].value_or(before), ready);
    before = ready;
    std::size_t row = 0;
    while (row < rows.size() && rows[row].bars.back().end > begun) ++row;
    if (row == most_bucket_rows) continue;  // it stands in the table
    if (row == rows.size())
      rows.push_back({row == 0 ? "buckets" : "", index, 0, bucket_height, {}, {}, {}, {}});
    const std::string size = to_string(groups[b].size);
    const std::int32_t name = names_.number_of(
        fmt::format("bucket {}: {}, {} gradients", b, size, groups[b].parameters.size()));
    const std::int32_t detail = details_.number_of(
        fmt::format("filled for {}, then waited {}, reduced in {}, exposed {}",
                    to_string(ready - begun), to_string(bucket.start - ready),
                    to_string(bucket.end - bucket.start), to_string(bucket.exposed)));
    if (ready > begun) rows[row].bars.push_back({begun, ready, Paint::copy, name, detail, -1});
    if (bucket.start > ready)
      rows[row].bars.push_back({ready, bucket.start, Paint::launch, name, detail, -1});
    rows[row].bars.push_back({bucket.start, bucket.end, Paint::collective, name, detail, -1});
  }
  return rows;
}

/// A line as thick as the lane is high, a piece for each bar; every other bar of a paint is drawn a
/// little lighter, so that neighbours are told apart. Narrow bars that lie end to end are one
/// piece: nobody would tell them apart. page.js draws what is zoomed to by the same rule.
std::string Timelines::bars_of(const Lane& lane) const {
  struct Line {
    std::string path;
    std::int64_t at = 0;
  };
  std::array<std::array<Line, 2>, paint_names.size()> lines;
  const std::string middle = fmt::format(" {}", coordinate(lane.top + lane.height / 2));
  const auto add = [&](Paint paint, std::size_t odd, std::int64_t from, std::int64_t to) {
    Line& line = lines[static_cast<std::size_t>(paint)][odd];
    const bool first = line.path.empty();
    line.path += first ? 'M' : 'm';
    append_number(line.path, from - line.at);
    line.path += first ? middle : " 0";
    line.path += 'h';
    append_number(line.path, to - from);
    line.at = to;
  };
  const double narrow = narrow_bar * static_cast<double>(end_ / tick_) / time_width;
  std::size_t turn = 0;
  for (auto bar = lane.bars.begin(); bar != lane.bars.end();) {
    const Paint paint = bar->paint;
    const std::int64_t from = ticks(bar->start);
    std::int64_t to = std::max(ticks(bar->end), from + 1);
    const bool alone = static_cast<double>(to - from) >= narrow;
    for (++bar; !alone && bar != lane.bars.end() && bar->paint == paint; ++bar) {
      const std::int64_t next = ticks(bar->start), end = std::max(ticks(bar->end), next + 1);
      if (static_cast<double>(end - next) >= narrow || (next - to) * least_gap > end - next) break;
      to = end;
    }
    add(paint, alone ? turn++ % 2 : 0, from, to);
  }
  std::string text;
  for (std::size_t paint = 0; paint < lines.size(); ++paint)
    for (std::size_t odd = 0; odd < 2; ++odd)
      if (const std::string& path = lines[paint][odd].path; !path.empty())
        text += fmt::format("<path class=\"{}{}\" d=\"{}\" stroke-width=\"{}\"/>\n",
                            paint_names[paint], odd ? " odd" : "", path, coordinate(lane.height));
  const auto hatch = [&](const Times& hatched, std::string_view what) {
    if (hatched.empty()) return;
    text += fmt::format("<path class=\"hatched {0}\" fill=\"url(#{1}-{0})\" d=\"", what, id_);
    for (const auto& [from, to] : hatched)
      text +=
          fmt::format("M{} {}h{}v{}h-{}z", ticks(from), coordinate(lane.top),
                      ticks(to) - ticks(from), coordinate(lane.height), ticks(to) - ticks(from));
    text += "\"/>\n";
  };
  hatch(lane.exposed, "exposed");
  hatch(lane.waiting, "waiting");
  hatch(lane.ended, "waiting");
  return text;
}

/// Names of those bars that have room for them.
std::string Timelines::labels_of(const Lane& lane) const {
  if (lane.height < bucket_height) return "";
  std::string text;
  for (const Bar& bar : lane.bars) {
    const double from = pixel(bar.start), room = pixel(bar.end) - from - 4;
    if (bar.name < 0 || room < 3 * letter_width) continue;
    const std::string name = (bar.detail == is_launch ? "launch " : "") + names_[bar.name];
    if (static_cast<double>(name.size()) * letter_width > room) continue;
    text += fmt::format("<text class=\"on{}\" x=\"{}\" y=\"{}\">{}</text>\n",
                        bar.paint == Paint::launch ? " dull" : "", coordinate(left + from + 2),
                        coordinate(lane.top + lane.height / 2 + 3.5), escaped_xml(name));
  }
  return text;
}

std::pair<std::string, double> Timelines::legend() const {
  std::array<bool, paint_names.size()> used{};
  bool exposed = false, waiting = false, ended = false, buckets = false;
  for (const Lane& lane : lanes_) {
    exposed = exposed || !lane.exposed.empty();
    waiting = waiting || !lane.waiting.empty();
    ended = ended || !lane.ended.empty();
    if (lane.label == "buckets") buckets = true;
    if (lane.height == bucket_height) continue;
    for (const Bar& bar : lane.bars) used[static_cast<std::size_t>(bar.paint)] = true;
  }
  std::string text;
  double x = left, y = 0;
  const auto add = [&](std::string_view what, std::string_view box) {
    const double wide = 18 + static_cast<double>(what.size()) * 6.3 + 16;
    if (x + wide > left + time_width + right) {
      x = left;
      y += 18;
    }
    text += fmt::format(
        "<g class=\"key\" transform=\"translate({} {})\">{}<text x=\"18\" "
        "y=\"16\">{}</text></g>\n",
        coordinate(x), coordinate(bottom_ + y), box, escaped_xml(what));
    x += wide;
  };
  for (std::size_t paint = 0; paint < used.size(); ++paint)
    if (used[paint])
      add(paint_legend[paint],
          fmt::format("<path class=\"{}\" d=\"M0 12h13\" stroke-width=\"10\"/>",
                      paint_names[paint]));
  const auto add_hatch = [&](std::string_view what, std::string_view said) {
    add(said, fmt::format("<rect y=\"7\" width=\"13\" height=\"10\" "
                          "fill=\"url(#{}-{}-key)\"/>",
                          id_, what));
  };
  if (exposed) add_hatch("exposed", "exposed: no kernel runs, a collective is under way");
  if (waiting) add_hatch("waiting", "no kernel runs, a collective waits to begin");
  if (ended) add_hatch("waiting", "rank 0 waits for the end of the step");
  if (buckets)
    add("buckets: fill, wait, all-reduce",
        "<path class=\"copy\" d=\"M0 12h4\" stroke-width=\"10\"/><path class=\"launch\" "
        "d=\"M4 12h4\" stroke-width=\"10\"/><path class=\"collective\" d=\"M8 12h5\" "
        "stroke-width=\"10\"/>");
  for (const auto& [words, box] : MemoryLanes::legend(has_units_alone(steps_))) add(words, box);
  return {text, y + legend_row + 8};
}

std::string Timelines::svg() const {
  const auto [legend, legend_height] = this->legend();
  std::string text = svg_head(
      left + time_width + right, bottom_ + legend_height, "Timeline of " + scenario_.name,
      "What the host, the device's streams and the buckets of rank 0 do in one training step, "
      "under each strategy on one scale.");
  const double per_pixel =
      end_ == Duration::zero() ? 1 : static_cast<double>(end_ / tick_) / time_width;
  constexpr std::string_view hatch =
      "<pattern id=\"{}-{}{}\" patternUnits=\"userSpaceOnUse\" width=\"6\" height=\"6\" "
      "patternTransform=\"scale({} 1)\"><path d=\"M0 6L6 0M-1 1L1 -1M5 7L7 5\" "
      "style=\"stroke:var(--{});stroke-width:{}\"/></pattern>\n";
  text += "<defs>\n";
  for (const bool key : {false, true}) {
    const std::string scale = key ? "1" : coordinate(per_pixel), tail = key ? "-key" : "";
    text += fmt::format(hatch, id_, "exposed", tail, scale, "hatch", 1.4);
    text += fmt::format(hatch, id_, "waiting", tail, scale, "launch", 1);
  }
  text += "</defs>\n" + legend;
  // Time: lines across all lanes.
  const double length = in_ms(end_), step = tick_step(length, 10);
  text += "<g class=\"axis\">\n";
  for (double at = 0; at <= length * (1 + 1e-9); at += step) {
    const std::string x = coordinate(left + (length > 0 ? at / length * time_width : 0));
    text += fmt::format(
        "<path class=\"grid\" d=\"M{0} {1}V{2}\"/><text class=\"soft\" x=\"{0}\" y=\"{3}\" "
        "text-anchor=\"middle\">{4}</text>\n",
        x, coordinate(axis_height), coordinate(bottom_), coordinate(axis_height - 6),
        tick_label(at, step));
    if (step <= 0) break;
  }
  text += "</g>\n";
  text += fmt::format("<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"end\">ms</text>\n",
                      coordinate(left - 10), coordinate(axis_height - 6));
  for (std::size_t i = 0; i < steps_.size(); ++i)
    text += fmt::format(
        "<text class=\"pointed\" x=\"8\" y=\"{0}\" style=\"font-weight:600\">{1}</text><text "
        "class=\"pointed length\" x=\"{2}\" y=\"{0}\" text-anchor=\"end\">{3}</text>\n",
        coordinate(heads_[i] + 19), escaped_xml(steps_[i].name), coordinate(left + time_width),
        escaped_xml(fmt::format("{:.2f} ms", in_ms(steps_[i].step->times.end))));
  for (const Lane& lane : lanes_)
    text += fmt::format(
        "<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"end\" style=\"font-size:11px\">{}"
        "</text>\n",
        coordinate(left - 8), coordinate(lane.top + lane.height / 2 + 4), escaped_xml(lane.label));
  text += memory_.labels(left - 8);
  text += fmt::format(
      "<svg class=\"bars\" x=\"{}\" y=\"0\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" "
      "preserveAspectRatio=\"none\">\n",
      coordinate(left), coordinate(time_width), coordinate(bottom_),
      std::max<std::int64_t>(1, end_ / tick_), coordinate(bottom_));
  for (const Lane& lane : lanes_) text += bars_of(lane);
  text += memory_.areas(tick_, end_);
  text += "</svg>\n<g class=\"labels\">\n";
  for (const Lane& lane : lanes_) text += labels_of(lane);
  return text + "</g>\n</svg>\n";
}

std::string Timelines::frame() const {
  return fmt::format(
      "{{\"tick_ns\":{},\"left\":{},\"width\":{},\"axis\":{},\"bottom\":{},\"end\":{}",
      tick_.count() / 1000, left, time_width, axis_height, coordinate(bottom_), end_ / tick_);
}

std::string Timelines::json() const {
  std::string text = frame() + ",\"paints\":[";
  for (const std::string_view name : paint_names) {
    append_quoted(text, name);
    text += ',';
  }
  text.back() = ']';
  text += ",\"names\":";
  names_.append_to(text);
  text += ",\"details\":";
  details_.append_to(text);
  text += ",\"lanes\":[";
  for (const Lane& lane : lanes_) {
    if (&lane != &lanes_.front()) text += ',';
    append_lane(text, lane);
  }
  return text + "]}";
}

void Timelines::append_lane(std::string& json, const Lane& lane) const {
  json += "{\"label\":";
  append_quoted(json, lane.label);
  json += ",\"step\":";
  append_quoted(json, steps_[lane.step].name);
  json += fmt::format(",\"top\":{},\"height\":{},\"tasks\":[", coordinate(lane.top),
                      coordinate(lane.height));
  std::int64_t at = 0, name = 0;
  for (const Bar& bar : lane.bars) {
    const std::int64_t from = ticks(bar.start), to = ticks(bar.end);
    for (const std::int64_t value :
         {from - at, to - from, bar.name - name, std::int64_t{bar.detail}, std::int64_t{bar.why},
          static_cast<std::int64_t>(bar.paint)}) {
      append_number(json, value);
      json += ',';
    }
    at = to;
    name = bar.name;
  }
  if (json.back() == ',') json.pop_back();
  json += "]}";
}

}  // namespace

TimelinePicture timeline_picture(const Scenario& scenario, const std::vector<NamedStep>& steps,
                                 std::string_view id) {
  const Timelines drawn(scenario, steps, id);
  return {drawn.svg(), drawn.frame() + "}", drawn.json()};
}

}  // namespace ddpsim
