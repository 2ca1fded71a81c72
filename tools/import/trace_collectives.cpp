#include "tools/import/trace_collectives.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <numeric>
#include <tuple>

namespace ddpsim {
namespace {

/// Adds to a message what only `other` knows.
void complete(TracedMessage& message, const TracedMessage& other) {
  const auto known = [](CollectiveKind kind) {
    return kind != CollectiveKind::unknown && kind != CollectiveKind::other;
  };
  if (!known(message.kind) && (known(other.kind) || message.kind == CollectiveKind::unknown))
    message.kind = other.kind;
  if (message.elements < 0) message.elements = other.elements;
  if (message.type < 0) message.type = other.type;
  if (message.group < 0) message.group = other.group;
  if (message.group_ranks == 0) message.group_ranks = other.group_ranks;
}

struct Call {
  TracedCollective collective;
  Duration end{};
  std::int64_t copied = 0;  ///< elements that its thread copied into buckets before; -1: not said
};

/// Elements of what a copy took; -1: not said.
std::int64_t elements_of(const Trace& trace, const HostSpan& copy) {
  if (copy.detail < 0) return -1;
  const Shape& shape = trace.shapes[static_cast<std::size_t>(copy.detail)];
  if (shape.type == Shape::in_bytes) return -1;
  return std::accumulate(shape.extents.begin(), shape.extents.end(), std::int64_t{1},
                         std::multiplies<>{});
}

/// Spans sorted by thread, then outermost first.
std::vector<HostSpan> sorted_spans(const Trace& trace, HostKind kind) {
  std::vector<HostSpan> spans;
  for (const HostSpan& span : trace.host)
    if (span.kind == kind) spans.push_back(span);
  std::stable_sort(spans.begin(), spans.end(), [](const HostSpan& a, const HostSpan& b) {
    return std::tuple(a.thread, a.begin, b.end) < std::tuple(b.thread, b.begin, a.end);
  });
  return spans;
}

const TracedMessage& message_of(const Trace& trace, std::int32_t index) {
  return trace.messages[static_cast<std::size_t>(index)];
}

/// By thread and begin.
std::vector<Call> calls_of(const Trace& trace) {
  std::vector<Call> calls;
  for (const HostSpan& span : sorted_spans(trace, HostKind::call)) {
    const TracedMessage& message = message_of(trace, span.detail);
    if (!calls.empty() && calls.back().collective.thread == span.thread &&
        span.begin < calls.back().end) {
      complete(calls.back().collective.message, message);
      continue;
    }
    Call& call = calls.emplace_back();
    call.collective = {message, span.thread, span.begin, true, std::nullopt};
    call.end = span.end;
  }
  return calls;
}

/// Counts for each call what its thread copied into buckets since the one before it; where no copy
/// was recorded, as by torch 1.13, what gradients it accumulated.
void add_copied(const Trace& trace, std::vector<Call>& calls) {
  std::vector<HostSpan> copies = sorted_spans(trace, HostKind::copy_in);
  if (copies.empty()) copies = sorted_spans(trace, HostKind::accumulate);
  auto copy = copies.begin();
  for (Call& call : calls) {
    const TracedCollective& its = call.collective;
    for (; copy != copies.end() &&
           std::pair(copy->thread, copy->begin) < std::pair(its.thread, its.called);
         ++copy) {
      const std::int64_t elements = elements_of(trace, *copy);
      if (copy->thread == its.thread)
        call.copied = call.copied < 0 || elements < 0 ? -1 : call.copied + elements;
    }
  }
}

/// The call of that thread in which the launch was, if any.
Call* call_at(std::vector<Call>& calls, const LaunchCall& launch) {
  const auto after =
      std::upper_bound(calls.begin(), calls.end(), std::pair(launch.thread, launch.at),
                       [](const auto& key, const Call& call) {
                         return key < std::pair(call.collective.thread, call.collective.called);
                       });
  if (after == calls.begin()) return nullptr;
  Call& call = *(after - 1);
  return call.collective.thread == launch.thread && launch.at <= call.end ? &call : nullptr;
}

struct Execution {
  TracedMessage message;
  Duration begin{}, end{};
};

/// Calls whose execution is not known yet, as time goes on.
class Waiting {
 public:
  Waiting(const Trace& trace, std::vector<Call>& calls) : calls_(calls) {
    if (!trace.device.empty()) return;
    for (const HostSpan& span : sorted_spans(trace, HostKind::forward))
      forwards_.push_back(span.begin);
    std::sort(forwards_.begin(), forwards_.end());
  }

  /// The first call before the execution of its kind and size, which then waits no longer. Threads
  /// that communicate may begin in another order than that of the calls: where a call does not say
  /// its size, what was copied into its bucket does.
  Call* take(const Execution& execution) {
    while (next_ < calls_.size() && calls_[next_].collective.called <= execution.begin) {
      // On a CPU a step begins when all collectives of the last have ended: what still waits was
      // not recorded.
      bool began = false;
      for (; forward_ < forwards_.size() && forwards_[forward_] <= calls_[next_].collective.called;
           ++forward_)
        began = true;
      if (began) calls_waiting_.clear();
      Call& call = calls_[next_++];
      if (!call.collective.ran) calls_waiting_.push_back(&call);
      if (calls_waiting_.size() > most_waiting) calls_waiting_.pop_front();
    }
    const std::int64_t elements = execution.message.elements;
    const auto of_kind = [&](const Call* call) {
      return execution.message.kind == CollectiveKind::unknown ||
             execution.message.kind == call->collective.message.kind;
    };
    const auto copied = [&](const Call* call) {
      return elements > 0 && call->collective.message.elements < 0 && call->copied == elements;
    };
    const auto of_size = [&](const Call* call) {
      const std::int64_t its = call->collective.message.elements;
      return elements < 0 || its < 0 || its == elements;
    };
    auto found = std::ranges::find_if(
        calls_waiting_, [&](const Call* call) { return of_kind(call) && copied(call); });
    if (found == calls_waiting_.end())
      found = std::ranges::find_if(
          calls_waiting_, [&](const Call* call) { return of_kind(call) && of_size(call); });
    if (found == calls_waiting_.end()) return nullptr;
    Call* call = *found;
    calls_waiting_.erase(found);
    return call;
  }

 private:
  static constexpr std::size_t most_waiting = 256;
  std::vector<Call>& calls_;
  std::deque<Call*> calls_waiting_;
  std::vector<Duration> forwards_;  ///< where nothing runs on a device
  std::size_t next_ = 0, forward_ = 0;
};

}  // namespace

std::vector<TracedCollective> collectives_of(
    const Trace& trace, const std::vector<std::optional<LaunchCall>>& launched) {
  std::vector<Call> calls = calls_of(trace);
  add_copied(trace, calls);
  std::vector<Execution> loose;  // whose launch is not known
  for (std::size_t i = 0; i < trace.device.size(); ++i) {
    const DeviceSpan& span = trace.device[i];
    if (span.message < 0) continue;
    const TracedMessage& message = message_of(trace, span.message);
    Call* call = launched[i] ? call_at(calls, *launched[i]) : nullptr;
    if (call == nullptr) {
      loose.push_back({message, span.begin, span.end});
      continue;
    }
    complete(call->collective.message, message);
    std::optional<std::pair<Duration, Duration>>& ran = call->collective.ran;
    if (!ran)  // a large message may take several kernels
      ran = {span.begin, span.end};
    else
      ran = {std::min(ran->first, span.begin), std::max(ran->second, span.end)};
  }
  for (const HostSpan& span : trace.host)
    if (span.kind == HostKind::execution)
      loose.push_back({message_of(trace, span.detail), span.begin, span.end});
  std::stable_sort(loose.begin(), loose.end(),
                   [](const Execution& a, const Execution& b) { return a.begin < b.begin; });

  std::erase_if(
      calls, [](const Call& call) { return call.collective.message.kind == CollectiveKind::none; });
  std::stable_sort(calls.begin(), calls.end(), [](const Call& a, const Call& b) {
    return a.collective.called < b.collective.called;
  });
  std::vector<TracedCollective> collectives;
  Waiting waiting(trace, calls);
  for (const Execution& execution : loose) {
    if (execution.message.kind == CollectiveKind::none) continue;
    if (Call* call = waiting.take(execution)) {
      complete(call->collective.message, execution.message);
      call->collective.ran = {execution.begin, execution.end};
    } else {
      collectives.push_back({execution.message, 0, execution.begin, false,
                             std::pair(execution.begin, execution.end)});
    }
  }
  for (const Call& call : calls) collectives.push_back(call.collective);
  std::stable_sort(
      collectives.begin(), collectives.end(),
      [](const TracedCollective& a, const TracedCollective& b) { return a.called < b.called; });
  return collectives;
}

}  // namespace ddpsim
