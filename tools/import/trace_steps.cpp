#include "tools/import/trace_steps.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

namespace ddpsim {
namespace {

struct Window {
  std::string name;
  Duration begin{}, end{};
};

std::vector<HostSpan> of_kind(const std::vector<HostSpan>& spans, HostKind kind) {
  std::vector<HostSpan> found;
  std::copy_if(spans.begin(), spans.end(), std::back_inserter(found),
               [&](const HostSpan& span) { return span.kind == kind; });
  return found;
}

/// The steps on the host, and a note where the trace does not mark them itself.
std::vector<Window> windows_of(const IndexedTrace& index, std::vector<std::string>& notes) {
  std::vector<Window> windows;
  Duration last{};
  for (const HostSpan& span : index.host) last = std::max(last, span.end);
  const std::vector<HostSpan> steps = of_kind(index.host, HostKind::step);
  const std::vector<HostSpan> optimizers = of_kind(index.host, HostKind::optimizer);
  const std::vector<HostSpan> forwards = of_kind(index.host, HostKind::forward);
  if (!steps.empty()) {
    for (const HostSpan& span : steps)
      if (windows.empty() || span.begin >= windows.back().end)
        windows.push_back({fmt::format("step {}", span.detail), span.begin, span.end});
    return windows;
  }
  const auto add = [&](Duration begin, Duration end) {
    windows.push_back({fmt::format("step {}", windows.size() + 1), begin, end});
  };
  if (!optimizers.empty()) {
    Duration begin = index.host.front().begin;
    for (const HostSpan& span : optimizers) {
      if (span.begin < begin) continue;
      add(begin, span.end);
      begin = span.end;
    }
    notes.emplace_back(
        "the steps are not marked (prof.step()): each is taken to end with its optimizer");
  } else if (!forwards.empty()) {
    for (std::size_t i = 0; i < forwards.size(); ++i)
      add(forwards[i].begin, i + 1 < forwards.size() ? forwards[i + 1].begin : last);
    notes.emplace_back(
        "the steps are not marked (prof.step()), nor the optimizer: each is taken to begin with "
        "DistributedDataParallel's forward");
  } else if (!index.host.empty()) {
    add(index.host.front().begin, last);
    notes.emplace_back("no step is marked (prof.step()): the whole trace is taken for one");
  }
  return windows;
}

template <typename T, typename Key>
std::pair<std::size_t, std::size_t> range(const std::vector<T>& sorted, const Window& window,
                                          Key key) {
  const auto at = [&](Duration time) {
    return static_cast<std::size_t>(
        std::lower_bound(sorted.begin(), sorted.end(), time,
                         [&](const T& each, Duration value) { return key(each) < value; }) -
        sorted.begin());
  };
  return {at(window.begin), at(window.end)};
}

/// What was launched in a stretch of a host thread's time.
struct Launched {
  Duration time{};          ///< on the device
  std::int64_t bytes = -1;  ///< if there was just one copy
};

/// Work on the device by who launched it and when.
class LaunchedWork {
 public:
  explicit LaunchedWork(const IndexedTrace& index) {
    for (std::size_t i = 0; i < index.trace.device.size(); ++i) {
      const DeviceSpan& span = index.trace.device[i];
      if (!index.launched[i] || span.message >= 0) continue;
      of_[index.launched[i]->thread].push_back(
          {index.launched[i]->at, span.end - span.begin, span.kernel ? 0U : 1U, span.bytes});
    }
    for (auto& [thread, work] : of_) {
      std::stable_sort(work.begin(), work.end(),
                       [](const Work& a, const Work& b) { return a.at < b.at; });
      for (std::size_t i = 1; i < work.size(); ++i) {
        work[i].time = added(work[i].time, work[i - 1].time);
        if (work[i].copies == 0) work[i].bytes = work[i - 1].bytes;
        work[i].copies += work[i - 1].copies;
      }
    }
  }

  Launched in(std::uint32_t thread, Duration begin, Duration end) const {
    const auto found = of_.find(thread);
    if (found == of_.end()) return {};
    const std::vector<Work>& work = found->second;
    const auto first = std::lower_bound(work.begin(), work.end(), begin,
                                        [](const Work& a, Duration time) { return a.at < time; });
    const auto last = std::upper_bound(first, work.end(), end,
                                       [](Duration time, const Work& a) { return time < a.at; });
    if (first == last) return {};
    const Work before = first == work.begin() ? Work{} : *(first - 1);
    const Work& through = *(last - 1);
    return {through.time - before.time,
            through.copies - before.copies == 1 ? through.bytes : std::int64_t{-1}};
  }

 private:
  struct Work {
    Duration at{};
    Duration time{};           ///< of all up to here
    std::uint32_t copies = 0;  ///< likewise
    std::int64_t bytes = -1;   ///< of the last copy up to here
  };
  std::map<std::uint32_t, std::vector<Work>> of_;
};

class StepReader {
 public:
  explicit StepReader(const IndexedTrace& index) : index_(index), work_(index) {}

  RawStep read(const Window& window) const {
    RawStep step;
    step.found.name = window.name;
    step.begin = index_.passed(window.begin);
    step.found.length = index_.passed(window.end) - step.begin;
    const auto [first, last] =
        range(index_.host, window, [](const HostSpan& span) { return span.begin; });
    const std::vector<HostSpan> spans(index_.host.begin() + static_cast<std::ptrdiff_t>(first),
                                      index_.host.begin() + static_cast<std::ptrdiff_t>(last));
    const auto [from, to] =
        range(index_.collectives, window, [](const TracedCollective& each) { return each.called; });
    step.collectives.assign(index_.collectives.begin() + static_cast<std::ptrdiff_t>(from),
                            index_.collectives.begin() + static_cast<std::ptrdiff_t>(to));
    read_passes(spans, step);
    for (const HostSpan& span : spans)
      if (span.kind == HostKind::copy_out) step.found.copied_back.push_back(copied(span));
    return step;
  }

 private:
  /// The shape of a part of a bucket: as recorded, or a list of its bytes.
  Shape copied(const HostSpan& span) const {
    if (span.detail >= 0) return index_.trace.shapes[static_cast<std::size_t>(span.detail)];
    return {{work_.in(span.thread, span.begin, span.end).bytes}, Shape::in_bytes};
  }

  void read_passes(const std::vector<HostSpan>& spans, RawStep& step) const {
    Duration after{};  // the last forward pass of several begins
    for (const HostSpan& span : spans) {
      if (span.kind == HostKind::forward) {
        ++step.forwards;
        after = span.begin;
      }
      if (span.kind == HostKind::optimizer)
        step.optimizers.emplace_back(index_.passed(span.begin), index_.passed(span.end));
      if (span.kind == HostKind::zero_grad)
        step.found.zero_grad = added(step.found.zero_grad, span.end - span.begin);
      if (span.kind == HostKind::loading)
        step.found.loading = added(step.found.loading, span.end - span.begin);
    }
    if (step.forwards == 0) after = find_passes(spans, step);
    std::optional<Duration> first, last_node;
    for (const HostSpan& span : spans) {
      if (step.forwards > 0 && span.begin < after) continue;
      if (span.kind == HostKind::node || span.kind == HostKind::hook) {
        if (!first) first = span.begin;
      }
      if (span.kind == HostKind::node) last_node = std::max(last_node.value_or(span.end), span.end);
      if (span.kind == HostKind::hook) step.hooks.push_back({span, -1, {}});
      if (span.kind == HostKind::accumulate || span.kind == HostKind::copy_in)
        note_inner(span, step.hooks);
    }
    if (!first || step.hooks.empty()) return;
    for (Hook& hook : step.hooks) finish(hook);
    const Duration begin = index_.passed(*first);
    step.found.forward = begin - step.begin;
    Duration own{}, latest{};
    for (const Hook& hook : step.hooks) {
      latest = std::max(latest, index_.passed(hook.span.begin) - begin - own);
      step.found.ready.push_back(latest);
      step.found.hook_shapes.push_back(hook.shape);
      own = added(own, hook.own_work);
    }
    step.found.backward = latest;
    if (last_node && *last_node > step.hooks.back().span.end)
      step.found.backward = std::max(latest, index_.passed(*last_node) - begin - own);
    const Duration host_end = std::max(last_node.value_or(Duration{}), step.hooks.back().span.end);
    step.backward_begin = begin;
    step.backward_end = std::max(begin, index_.passed(host_end));
    read_copies_back(spans, host_end, step);
  }

  /// Where nobody marks forward passes: the begin of the last one, if there are several, and how
  /// many. Between two backward passes the host calls operators outside of the autograd engine,
  /// about as many as before the first; within one pass it adds up a few gradients so. All passes
  /// have the same gradients.
  static Duration find_passes(const std::vector<HostSpan>& spans, RawStep& step) {
    std::vector<Hook> hooks;
    std::vector<std::pair<Duration, std::size_t>> begins;  // of later passes: hooks before
    std::size_t operators = 0, first_operators = 0;
    Duration begin{};
    bool in_first = true;
    for (const HostSpan& span : spans) {
      if (span.kind == HostKind::compute) {
        if (operators++ == 0) begin = span.begin;
      } else if (span.kind == HostKind::accumulate) {
        note_inner(span, hooks);
      } else if (span.kind == HostKind::node || span.kind == HostKind::hook) {
        const std::size_t before = begins.empty() ? 0 : begins.back().second;
        if (in_first) first_operators = operators;
        if (first_operators > 0 && operators > 0 && 2 * operators >= first_operators &&
            hooks.size() > before)
          begins.emplace_back(begin, hooks.size());
        in_first = false;
        operators = 0;
        if (span.kind == HostKind::hook) hooks.push_back({span, -1, {}});
      }
    }
    if (hooks.empty()) return {};
    // A trace without operators of the forward passes may have an all-reduce for each gradient.
    const auto sent = static_cast<std::size_t>(
        std::ranges::count_if(step.collectives, [&](const TracedCollective& each) {
          return each.message.kind == CollectiveKind::all_reduce &&
                 each.called >= hooks.back().span.end;
        }));
    const std::size_t passes = !begins.empty() ? begins.size() + 1
                               : sent > 1      ? hooks.size() / sent
                                               : 1;
    if (passes < 2 || hooks.size() % passes != 0) return {};
    const std::size_t of_pass = hooks.size() / passes;
    for (std::size_t i = 0; i < begins.size(); ++i)
      if (begins[i].second != (i + 1) * of_pass) return {};
    for (std::size_t i = of_pass; i < hooks.size(); ++i)
      if (hooks[i].shape != hooks[i - of_pass].shape) return {};
    step.forwards = static_cast<int>(passes);
    return begins.empty() ? hooks[hooks.size() - of_pass - 1].span.end + Duration{1}
                          : begins.back().first;
  }

  /// What the copies out of the buckets add to the step. On a device the host issues them behind
  /// the backward pass, and makes the views they write to; where it does nothing but that, and the
  /// device waits for it, the host's time counts.
  void read_copies_back(const std::vector<HostSpan>& spans, Duration host_end,
                        RawStep& step) const {
    Duration called{}, on_device{}, last = host_end;
    int copies = 0;
    for (const HostSpan& span : spans) {
      if (span.kind != HostKind::copy_out || span.begin < host_end) continue;
      ++copies;
      called = added(called, span.end - span.begin);
      on_device = added(on_device, work_.in(span.thread, span.begin, span.end).time);
      last = std::max(last, span.end);
    }
    step.copied = std::max(step.backward_end, index_.passed(last));
    if (copies == 0) return;
    // A host that runs ahead of its device shows nothing behind the backward pass.
    const Duration behind =
        last <= step.backward_end
            ? Duration::zero()
            : last - step.backward_end - index_.waiting.within(step.backward_end, last);
    const Duration took = index_.trace.device.empty() ? called : std::max(on_device, behind);
    if (took >= copies * Duration{1}) step.found.copy_back = took / copies;
  }

  /// An accumulation, or a copy into the bucket, of the hook that surrounds it.
  static void note_inner(const HostSpan& span, std::vector<Hook>& hooks) {
    if (hooks.empty()) return;
    Hook& hook = hooks.back();
    if (span.thread != hook.span.thread || span.begin > hook.span.end) return;
    if (hook.shape < 0) hook.shape = span.detail;
    // For now: where the accumulation ends.
    if (span.kind == HostKind::accumulate) hook.own_work = span.end - hook.span.begin;
  }

  void finish(Hook& hook) const {
    const Duration accumulated = hook.span.begin + hook.own_work;
    if (hook.span.end <= accumulated) {  // what is launched at that instant is the next kernel
      hook.own_work = {};
      return;
    }
    hook.own_work = index_.trace.device.empty()
                        ? hook.span.end - accumulated
                        : work_.in(hook.span.thread, accumulated, hook.span.end).time;
  }

 private:
  const IndexedTrace& index_;
  LaunchedWork work_;
};

}  // namespace

IndexedTrace::IndexedTrace(const Trace& given) : trace(given), host(given.host) {
  std::stable_sort(host.begin(), host.end(), [](const HostSpan& a, const HostSpan& b) {
    return std::pair(a.begin, b.end) < std::pair(b.begin, a.end);
  });
  std::vector<Interval> kernels;
  for (const DeviceSpan& span : trace.device) {
    std::optional<LaunchCall>& launch = launched.emplace_back();
    const auto found = std::lower_bound(
        trace.launches.begin(), trace.launches.end(), span.correlation,
        [](const LaunchCall& each, std::uint64_t id) { return each.correlation < id; });
    if (span.correlation != 0 && found != trace.launches.end() &&
        found->correlation == span.correlation)
      launch = *found;
    if (span.message >= 0) continue;
    done.emplace_back(launch ? launch->at : span.begin, span.end);
    if (span.kernel) kernels.emplace_back(span.begin, span.end);
  }
  std::sort(done.begin(), done.end());
  for (std::size_t i = 1; i < done.size(); ++i)
    done[i].second = std::max(done[i].second, done[i - 1].second);
  if (trace.device.empty())
    for (const HostSpan& span : host)
      if (span.kind == HostKind::compute || span.kind == HostKind::node ||
          span.kind == HostKind::hook)
        kernels.emplace_back(span.begin, span.end);
  computing = Coverage(std::move(kernels));
  waiting = Coverage(trace.waits);
  collectives = collectives_of(trace, launched);
}

std::vector<RawStep> steps_of(const IndexedTrace& index, std::vector<std::string>& notes) {
  const StepReader reader(index);
  std::vector<RawStep> steps;
  for (const Window& window : windows_of(index, notes)) steps.push_back(reader.read(window));
  return steps;
}

}  // namespace ddpsim
