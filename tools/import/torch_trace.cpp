#include "tools/import/torch_trace.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "tools/import/trace_account.hpp"
#include "tools/import/trace_steps.hpp"

namespace ddpsim {
namespace {

std::string name_at(const Trace& trace, std::int32_t index) {
  return index < 0 ? "" : trace.names[static_cast<std::size_t>(index)];
}

/// Does a step reduce gradients before its last backward pass?
bool sends_before_last_pass(const RawStep& step) {
  return std::ranges::any_of(step.found.others, [&](const FoundCollective& each) {
    return each.kind == CollectiveKind::all_reduce &&
           step.begin + each.launched < step.backward_begin;
  });
}

/// Collectives as found, with the tensors of each: hooks that fired since the last one of a hook.
std::vector<FoundCollective> found_collectives(const IndexedTrace& index, const RawStep& step) {
  std::vector<FoundCollective> found;
  std::map<std::string, std::size_t> counted;  // hooks, by process group
  std::size_t fired = 0;
  for (const TracedCollective& each : step.collectives) {
    FoundCollective& collective = found.emplace_back();
    collective.kind = each.message.kind;
    collective.elements = each.message.elements;
    collective.type = name_at(index.trace, each.message.type);
    collective.group = name_at(index.trace, each.message.group);
    collective.group_ranks = each.message.group_ranks;
    collective.launched = each.called - step.begin;
    collective.ran = each.ran.has_value();
    if (each.ran) {
      collective.start = each.ran->first - step.begin;
      collective.end = each.ran->second - step.begin;
    }
    while (fired < step.hooks.size() && step.hooks[fired].span.begin <= each.called) ++fired;
    if (fired == 0) continue;
    const HostSpan& hook = step.hooks[fired - 1].span;
    collective.in_hook = !each.has_call || (each.thread == hook.thread && each.called <= hook.end);
    if (each.message.kind != CollectiveKind::all_reduce || !collective.in_hook) continue;
    std::size_t& before = counted[collective.group];
    collective.tensors = static_cast<int>(fired - before);
    before = fired;
  }
  return found;
}

/// The process group whose all-reduces carry gradients: that of hooks, or else of what follows the
/// backward pass, with the most elements.
std::optional<std::pair<std::string, bool>> gradient_group(
    const std::vector<std::vector<FoundCollective>>& steps, const std::vector<RawStep>& raw) {
  for (const bool in_hook : {true, false}) {
    std::map<std::string, std::int64_t> elements;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (const FoundCollective& each : steps[i]) {
        if (each.kind != CollectiveKind::all_reduce || each.in_hook != in_hook) continue;
        if (!in_hook &&
            (raw[i].hooks.empty() || each.launched < raw[i].hooks.back().span.begin - raw[i].begin))
          continue;
        elements[each.group] += std::max<std::int64_t>(each.elements, 1);
      }
    }
    const auto most =
        std::max_element(elements.begin(), elements.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != elements.end()) return std::pair(most->first, in_hook);
  }
  return std::nullopt;
}

void measure_overlap(const IndexedTrace& index, const RawStep& raw, FoundStep& step) {
  std::vector<Interval> running;
  for (const TracedCollective& each : raw.collectives)
    if (each.ran) running.push_back(*each.ran);
  const Coverage together(std::move(running));
  step.busy = together.length();
  for (const auto& [begin, end] : together.intervals())
    step.overlapped += index.computing.within(begin, end);
}

/// The value most steps have; the largest of several.
std::size_t usual(const std::vector<std::size_t>& counts) {
  std::map<std::size_t, int> seen;
  for (const std::size_t count : counts) ++seen[count];
  std::size_t best = 0;
  int times = 0;
  for (const auto& [count, number] : seen) {
    if (count == 0 || number < times) continue;
    best = count;
    times = number;
  }
  return best;
}

/// How many ranks average gradients together: as their all-reduces say, or else all ranks of the
/// job; 0: not said.
int group_ranks_of(const std::vector<RawStep>& steps, int ranks) {
  for (const RawStep& step : steps)
    for (const FoundCollective& each : step.found.all_reduces)
      if (each.group_ranks > 0) return each.group_ranks;
  return ranks;
}

/// Why a step is not a whole one like the others; "" if it is.
std::string lacking(const FoundStep& step, std::size_t hooks, std::size_t all_reduces, bool alone) {
  if (step.ready.empty()) return "no backward pass";
  if (step.forward <= Duration::zero()) return "no forward pass";
  if (step.ready.size() != hooks)
    return fmt::format("{} gradient hooks instead of {}", step.ready.size(), hooks);
  if (step.all_reduces.size() != all_reduces)
    return fmt::format("{} all-reduces of gradients instead of {}", step.all_reduces.size(),
                       all_reduces);
  if (alone) return "";
  const auto ran = std::count_if(step.all_reduces.begin(), step.all_reduces.end(),
                                 [](const FoundCollective& each) { return each.ran; });
  if (static_cast<std::size_t>(ran) != all_reduces)
    return fmt::format("the trace shows only {} of its {} all-reduces run{}", ran, all_reduces,
                       ran == 0 ? ", and does not say that one rank was alone" : "");
  return "";
}

/// A few lines and how many more there are.
void shorten(std::vector<std::string>& lines) {
  constexpr std::size_t most = 20;
  if (lines.size() <= most) return;
  const std::size_t left = lines.size() - most;
  lines.resize(most);
  lines.push_back(fmt::format("and {} more like these", left));
}

void refuse_several_processes(const Trace& trace, const std::string& file) {
  std::set<std::string> processes;
  for (const HostSpan& span : trace.host) {
    const std::string& thread = trace.threads[span.thread];
    if (span.kind == HostKind::hook) processes.insert(thread.substr(0, thread.find('/')));
  }
  if (processes.size() > 1)
    throw InputError(
        fmt::format("{}: gradient hooks of {} processes: import the trace of one rank at a time",
                    file, processes.size()));
}

/// Does one process train without DistributedDataParallel? It has the hooks of a backward pass, and
/// calls no collective. (A step of DistributedDataParallel under no_sync calls none either.)
bool without_ddp(const Trace& trace, const IndexedTrace& index, const std::vector<RawStep>& raw) {
  const bool hooks =
      std::any_of(raw.begin(), raw.end(), [](const RawStep& step) { return !step.hooks.empty(); });
  const bool wrapped = std::any_of(index.host.begin(), index.host.end(), [](const HostSpan& span) {
    return span.kind == HostKind::forward;
  });
  return hooks && !wrapped && index.collectives.empty() && trace.ranks <= 1 &&
         trace.graph_launches == 0;
}

[[noreturn]] void refuse_without_gradients(const Trace& trace, const IndexedTrace& index,
                                           const std::vector<RawStep>& raw,
                                           const std::string& file) {
  const bool hooks =
      std::any_of(raw.begin(), raw.end(), [](const RawStep& step) { return !step.hooks.empty(); });
  const bool scattered = std::any_of(index.collectives.begin(), index.collectives.end(),
                                     [](const TracedCollective& each) {
                                       return each.message.kind == CollectiveKind::reduce_scatter;
                                     });
  std::string why = "expected a trace of training with DistributedDataParallel";
  if (trace.graph_launches > 0)
    why =
        "its steps replay a CUDA graph, whose kernels do not tell what launched them; profile "
        "steps without graphs";
  else if (scattered)
    why =
        "gradients are reduce-scattered (FSDP, ZeRO), which is not data parallelism as ddpsim "
        "knows it";
  else if (!hooks)
    why += "; it has no operators of a backward pass (profile with ProfilerActivity.CPU as well)";
  throw InputError(fmt::format("{}: no all-reduce of gradients found: {}", file, why));
}

}  // namespace

TraceFinding find_training(const Trace& trace, const std::string& file) {
  refuse_several_processes(trace, file);
  const IndexedTrace index(trace);
  TraceFinding finding;
  finding.on_device = !trace.device.empty();
  finding.device_name = trace.device_name;
  finding.devices = trace.devices;
  finding.backend = trace.backend;
  finding.rank = trace.rank;
  finding.ranks = trace.ranks;
  finding.events = trace.events;
  if (trace.unended > 0)
    finding.notes.push_back(fmt::format("{} events have no end and were left out", trace.unended));

  std::vector<RawStep> raw = steps_of(index, finding.notes);
  std::vector<std::vector<FoundCollective>> collectives;
  for (const RawStep& step : raw) collectives.push_back(found_collectives(index, step));
  const auto group = gradient_group(collectives, raw);
  const bool plain = !group && without_ddp(trace, index, raw);
  if (!group && !plain) refuse_without_gradients(trace, index, raw, file);
  std::vector<std::size_t> hooks, all_reduces;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    FoundStep& step = raw[i].found;
    const Duration last_hook =
        raw[i].hooks.empty() ? Duration::max() : raw[i].hooks.back().span.begin - raw[i].begin;
    for (const FoundCollective& each : collectives[i]) {
      const bool gradients = group && each.kind == CollectiveKind::all_reduce &&
                             each.group == group->first && each.in_hook == group->second &&
                             (each.in_hook || each.launched >= last_hook);
      (gradients ? step.all_reduces : step.others).push_back(each);
    }
    measure_overlap(index, raw[i], step);
    hooks.push_back(step.ready.size());
    all_reduces.push_back(step.all_reduces.size());
  }
  account(index, raw);
  finding.group_ranks = plain ? 1 : group_ranks_of(raw, trace.ranks);
  int most_forwards = 0;
  bool sent_before = false;
  for (const RawStep& step : raw) {
    const std::string lack = lacking(step.found, usual(hooks), usual(all_reduces), finding.alone());
    if (lack.empty()) {
      finding.steps.push_back(step.found);
      most_forwards = std::max(most_forwards, step.forwards);
      sent_before = sent_before || sends_before_last_pass(step);
    } else {
      finding.notes.push_back(fmt::format("{} is left out: {}", step.found.name, lack));
    }
  }
  shorten(finding.notes);
  if (finding.steps.empty())
    throw InputError(fmt::format("{}: no whole training step: {}", file,
                                 finding.notes.empty() ? "none begins" : finding.notes.back()));
  if (most_forwards > 1)
    finding.notes.push_back(fmt::format(
        "a step has {} forward passes: all before the last backward pass counts as forward{}. The "
        "profile is of all of them: leave training.micro_batches out",
        most_forwards, sent_before ? ", with what was sent in it" : ""));
  if (plain)
    finding.notes.emplace_back(
        "no collective in it: one rank without DistributedDataParallel. This is a profile of "
        "computation, with hooks, and holds no communication");
  else if (finding.alone())
    finding.notes.emplace_back(
        "the gradients' group has one rank: nothing was sent. This is a profile of computation, "
        "with "
        "hooks and buckets, and holds no communication");
  const FoundStep& first = finding.steps.front();
  if (!group)
    finding.strategy = Strategy::none;
  else if (!group->second)
    finding.strategy = first.all_reduces.size() == 1 ? Strategy::flat : Strategy::naive;
  else if (first.all_reduces.size() == first.ready.size() && first.copied_back.empty())
    finding.strategy = Strategy::overlap;
  return finding;
}

}  // namespace ddpsim
