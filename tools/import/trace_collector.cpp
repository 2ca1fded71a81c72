#include "tools/import/trace_collector.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_kept = 4'000'000;
constexpr std::size_t most_names = 10'000, most_shapes = 1'000'000;

}  // namespace

void TraceCollector::refuse(std::string_view problem) const {
  throw InputError(fmt::format("{}: event {}: {}", file_, trace.events, problem));
}

void TraceCollector::take(const TraceEvent& event) {
  if (event.phase != "X") return;
  const Source source = source_of(event.category);
  if (source == Source::ignored) return;
  const NameMeaning meaning = meaning_of(source, event.name);
  if (!meaning.matters) return;
  if (!event.begin) refuse("a span without \"ts\": is this a profiler's trace?");
  if (!event.duration || *event.duration < 0) {
    ++trace.unended;
    return;
  }
  const Duration begin = from_origin(*event.begin);
  const Duration end = from_origin(*event.begin + *event.duration);
  if (++kept_ > most_kept) refuse("more than 4 million events that matter: profile fewer steps");
  switch (source) {
    case Source::device:
      trace.device.push_back({begin, end, event.correlation, event.bytes,
                              meaning.collective ? message(event, meaning.collective_kind) : -1,
                              event.stream, meaning.kernel});
      return;
    case Source::runtime:
      if (meaning.graph) ++trace.graph_launches;
      if (meaning.sync)
        trace.waits.emplace_back(begin, end);
      else if (event.correlation > 0)
        trace.launches.push_back({event.correlation, begin, thread(event)});
      return;
    case Source::host:
      take_host(event, meaning, begin, end);
      return;
    case Source::ignored:
      return;
  }
}

void TraceCollector::take_host(const TraceEvent& event, const NameMeaning& meaning, Duration begin,
                               Duration end) {
  HostSpan span{begin, end, thread(event), meaning.kind, -1};
  switch (meaning.kind) {
    case HostKind::compute:
      if (covered(span)) {
        --kept_;
        return;
      }
      break;
    case HostKind::step:
      span.detail = meaning.number;
      break;
    case HostKind::accumulate:
    case HostKind::copy_in:
    case HostKind::copy_out:
      if (event.has_shape()) span.detail = shape(event);
      break;
    case HostKind::call:
    case HostKind::execution:
      span.detail = message(event, meaning.collective_kind);
      break;
    case HostKind::node:
    case HostKind::hook:
    case HostKind::forward:
    case HostKind::optimizer:
    case HostKind::zero_grad:
    case HostKind::loading:
      break;
  }
  if (meaning.kind == HostKind::node || meaning.kind == HostKind::hook ||
      meaning.kind == HostKind::compute)
    outermost_[span.thread] = {begin, end};
  trace.host.push_back(span);
}

/// Does the operator before it on its thread surround it? An operator stands after its caller.
bool TraceCollector::covered(const HostSpan& span) const {
  const auto last = outermost_.find(span.thread);
  return last != outermost_.end() && span.begin >= last->second.first &&
         span.end <= last->second.second;
}

Duration TraceCollector::from_origin(double microseconds) {
  if (!origin_) origin_ = microseconds;
  constexpr double farthest = 10.0 * 86400 * 1e6;
  const double offset = microseconds - *origin_;
  if (!(std::abs(offset) < farthest))
    refuse("a time more than 10 days from the first event: is this a profiler's trace?");
  return from_ticks(offset * 1e6);
}

std::int32_t TraceCollector::name_index(const std::string& name) {
  if (name.empty()) return -1;
  const auto [found, added] =
      names_.emplace(name.substr(0, 200), static_cast<std::int32_t>(names_.size()));
  if (added) {
    if (names_.size() > most_names) refuse("more than 10000 types and process groups");
    trace.names.push_back(found->first);
  }
  return found->second;
}

std::int32_t TraceCollector::shape(const TraceEvent& event) {
  Shape given{event.extents, name_index(event.input_type)};
  const auto [found, added] =
      shapes_.emplace(std::move(given), static_cast<std::int32_t>(shapes_.size()));
  if (added) {
    if (shapes_.size() > most_shapes) refuse("more than a million shapes of gradients");
    trace.shapes.push_back(found->first);
  }
  return found->second;
}

std::int32_t TraceCollector::message(const TraceEvent& event, CollectiveKind by_name) {
  TracedMessage given;
  given.kind = event.collective.empty() ? by_name : collective_kind_of(event.collective);
  given.elements = event.elements;
  if (given.elements < 0 && !event.extents.empty()) {
    given.elements = 1;
    for (const std::int64_t extent : event.extents)
      given.elements *= std::max<std::int64_t>(extent, 1);
  }
  given.type = name_index(event.type.empty() ? event.input_type : event.type);
  given.group = name_index(event.group);
  given.group_ranks = event.group_ranks;
  trace.messages.push_back(given);
  return static_cast<std::int32_t>(trace.messages.size() - 1);
}

std::uint32_t TraceCollector::thread(const TraceEvent& event) {
  std::string name =
      fmt::format("{}/{}", event.process.substr(0, 100), event.thread.substr(0, 100));
  const auto [found, added] =
      threads_.emplace(std::move(name), static_cast<std::uint32_t>(threads_.size()));
  if (added) {
    if (threads_.size() > most_names) refuse("more than 10000 threads");
    trace.threads.push_back(found->first);
  }
  return found->second;
}

}  // namespace ddpsim
