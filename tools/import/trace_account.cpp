#include "tools/import/trace_account.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace ddpsim {
namespace {

/// Begin of each part, and the end of the last.
using Bounds = std::array<Duration, step_parts + 1>;

/// One behind the other: no bound before the one before it. What a part would have without the
/// bound that its neighbours overtake is theirs.
Bounds bounds_of(const RawStep& step, bool on_host) {
  const Duration end = step.begin + step.found.length;
  Duration reduced = step.backward_end;
  for (const FoundCollective& each : step.found.all_reduces)
    if (each.ran) reduced = std::max(reduced, step.begin + each.end);
  Duration first = end, last = end;
  if (!step.optimizers.empty()) {
    first = step.optimizers.front().first;
    last = step.optimizers.back().second;
    // A host that computes has waited for the all-reduces, whatever their threads say later.
    if (on_host) reduced = std::min(reduced, first);
  }
  Bounds bounds{step.begin,
                step.backward_begin,
                step.backward_end,
                std::max(step.copied, reduced),
                first,
                last,
                end};
  for (std::size_t i = 1; i < bounds.size(); ++i)
    bounds[i] = std::clamp(bounds[i], bounds[i - 1], std::max(bounds[i - 1], end));
  return bounds;
}

/// The optimizer as far as it runs behind the all-reduces, and all else behind them.
void add_rest(const Bounds& bounds, RawStep& step) {
  const Duration finished = bounds[static_cast<std::size_t>(StepPart::between)],
                 end = bounds.back();
  Duration optimizer{};
  for (const auto& [from, to] : step.optimizers)
    optimizer = added(optimizer, std::max(Duration::zero(), to - std::max(from, finished)));
  if (optimizer > Duration::zero()) step.found.optimizer = optimizer;
  step.found.outside = std::max(Duration::zero(), end - finished - optimizer);
}

/// The stream that computes longest; -1 where streams are not said.
std::int32_t main_stream(const Trace& trace) {
  std::map<std::int32_t, Duration> busy;
  constexpr std::size_t most_streams = 10'000;
  for (const DeviceSpan& span : trace.device)
    if (span.message < 0 && (busy.size() < most_streams || busy.contains(span.stream)))
      busy[span.stream] = added(busy[span.stream], span.end - span.begin);
  const auto longest = std::max_element(
      busy.begin(), busy.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return longest == busy.end() ? -1 : longest->first;
}

template <typename Counts>
Coverage covered(const IndexedTrace& index, Counts counts) {
  std::vector<Interval> intervals;
  for (const DeviceSpan& span : index.trace.device)
    if (counts(span)) intervals.emplace_back(span.begin, span.end);
  if (!index.trace.device.empty()) return Coverage(std::move(intervals));
  return index.computing;  // operators: there is no device
}

}  // namespace

void account(const IndexedTrace& index, std::vector<RawStep>& steps) {
  std::vector<Bounds> bounds;
  for (RawStep& step : steps) {
    bounds.push_back(bounds_of(step, index.trace.device.empty()));
    add_rest(bounds.back(), step);
  }
  const auto each_part = [&](const auto& apply) {
    for (std::size_t s = 0; s < steps.size(); ++s)
      for (std::size_t p = 0; p < step_parts; ++p)
        apply(steps[s].found.parts[p], bounds[s][p], bounds[s][p + 1]);
  };
  each_part([&](PartTimes& part, Duration from, Duration to) {
    part.length = to - from;
    part.waiting = index.waiting.within(from, to);
  });
  const std::int32_t main = main_stream(index.trace);
  {
    const Coverage own = covered(
        index, [&](const DeviceSpan& span) { return span.message < 0 && span.stream == main; });
    each_part([&](PartTimes& part, Duration from, Duration to) {
      part.computing = own.within(from, to);
    });
  }
  {
    const Coverage all = covered(index, [](const DeviceSpan& span) { return span.message < 0; });
    each_part([&](PartTimes& part, Duration from, Duration to) {
      part.elsewhere = all.within(from, to) - part.computing;
    });
  }
  std::vector<Interval> busy;
  for (const DeviceSpan& span : index.trace.device) busy.emplace_back(span.begin, span.end);
  if (index.trace.device.empty()) busy = index.computing.intervals();
  for (const RawStep& step : steps)
    for (const TracedCollective& each : step.collectives)
      if (each.ran) busy.push_back(*each.ran);
  const Coverage any(std::move(busy));
  each_part([&](PartTimes& part, Duration from, Duration to) {
    const Duration used = any.within(from, to);
    part.collectives = used - part.computing - part.elsewhere;
    part.idle = part.length - used;
  });
}

}  // namespace ddpsim
