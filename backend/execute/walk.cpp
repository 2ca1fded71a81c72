// How a program runs for real.
//
// The host walks the program in order. What stands on its own stream it does, or has its device do;
// what stands on another, or communicates, it hands over (Streams), to begin in its turn once the
// earlier tasks that it names have ended. A Wait on the host's stream blocks the host until those
// have ended.
//
// A collective "starts" when the last rank of its group arrives, which no rank knows
// meanwhile: each notes when it arrived itself, and they tell each other after the run.

#include "backend/execute/walk.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <thread>
#include <variant>

#include <fmt/format.h>

#include "backend/cpu/busy.hpp"
#include "backend/device_error.hpp"
#include "backend/execute/timed.hpp"
#include "model/program/fingerprint.hpp"

namespace ddpsim::execute {

using program::Action;
using program::Call;
using program::Collective;
using program::Meet;
using program::Pause;
using program::Plugin;
using program::Receive;
using program::Send;
using program::Task;
using program::Wait;

namespace {

bool communicates(const Action& action) {
  return program::communicator_of(action) != nobody;
}

}  // namespace

Walk::Walk(const program::Job& job, const RunOptions& options, Memory& memory, Device& device,
           Link& link, Streams& streams)
    : job_(job),
      program_(job.programs[job.program_of[at(memory.rank())]]),
      options_(options),
      memory_(memory),
      device_(device),
      link_(link),
      streams_(streams),
      collectives_(job.communicators.size()) {
  run_.times.resize(program_.tasks.size());
  run_.fingerprint = program::fingerprint(job);
  run_.sent.emplace();
  for (std::uint32_t t = 0; t < program_.tasks.size(); ++t)
    if (const auto* collective = std::get_if<Collective>(&action_of(t)))
      collectives_[at(collective->communicator)].push_back(t);
}

RankRun Walk::run() {
  const Running running{job_, program_, options_, memory_, run_.times};
  device_.begin(job_, job_.program_of[at(memory_.rank())]);
  link_.begin(running);
  streams_.begin(running);
  link_.start_together();
  try {
    streams_.start();
    for (int i = 0; i < program_.rounds; ++i) round(i);
    run_.computed = streams_.finish() - Instant{};
  } catch (...) {
    link_.disconnect();
    streams_.abandon();
    throw;
  }
  run_.sent->overflows = device_.overflows();
  learn_starts();
  return std::move(run_);
}

void Walk::round(int number) {
  device_.begin_round();
  streams_.begin_round(number);
  for (std::uint32_t t = 0; t < program_.tasks.size(); ++t) {
    streams_.enter(t);
    execute(t);
    streams_.leave();
  }
  streams_.end_round();
}

void Walk::execute(std::uint32_t index) {
  TaskTimes& times = run_.times[index];
  times.issued = times.enqueued = now();
  if (options_.pause > Duration::zero() && index == options_.pause_before) {
    std::this_thread::sleep_for(options_.pause);
    times.enqueued = now();
  }
  if (host_does(index)) return do_on_host(index, times);
  hand_over(index);
  times.enqueued = now();
  if (program_.tasks[index].stream == 0) streams_.wait(index);
}

bool Walk::host_does(std::uint32_t index) const {
  const Action& action = action_of(index);
  if (program_.tasks[index].stream != 0 || communicates(action)) return false;
  return streams_.host_computes() || std::holds_alternative<Wait>(action) ||
         std::holds_alternative<Meet>(action) || std::holds_alternative<Pause>(action) ||
         std::holds_alternative<Call>(action);
}

void Walk::do_on_host(std::uint32_t index, TaskTimes& times) {
  const Task& task = program_.tasks[index];
  const Action& action = action_of(index);
  for (const std::uint32_t earlier : program_.waits_for(index)) streams_.wait(earlier);
  const bool waits = std::holds_alternative<Wait>(action);
  if (waits || std::holds_alternative<Meet>(action)) {
    if (!waits) link_.meet();
    times.issued = times.enqueued = times.start = times.end = now();
    return;
  }
  if (const auto* call = std::get_if<Call>(&action);
      call != nullptr && call->what == Call::What::hook)
    return call_hook(*call, task, times);
  timed(
      times, by_processor(options_, action), [this] { return now(); },
      [&] {
        if (std::holds_alternative<Pause>(action))
          std::this_thread::sleep_for(job_.works[task.work].host);
        else
          slowed([&] { device_.run({job_, task, memory_}); });
      });
}

void Walk::call_hook(const Call& call, const Task& task, TaskTimes& times) const {
  if (options_.hook) options_.hook(call.index, task.micro_batch);
  times.start = times.issued;
  times.enqueued = times.end = now();
}

void Walk::hand_over(std::uint32_t index) {
  const Task& task = program_.tasks[index];
  const Action& action = action_of(index);
  if (communicates(action)) {
    const std::uint32_t tag = next_tag(action);
    return streams_.submit(index, [this, &task, tag] { communicate(task, tag); });
  }
  if (std::holds_alternative<Wait>(action)) return streams_.submit(index, [] {});
  streams_.submit(index, [this, &task] { device_.run({job_, task, memory_}); });
}

/// The number of a collective among those of its communicator, of a message among those to that
/// peer, or from it: the same on all ranks that take part.
std::uint32_t Walk::next_tag(const Action& action) {
  Lane lane{program::communicator_of(action), static_cast<std::int16_t>(nobody), false};
  if (const auto* send = std::get_if<Send>(&action)) lane = {send->communicator, send->peer, true};
  if (const auto* receive = std::get_if<Receive>(&action))
    lane = {receive->communicator, receive->peer, false};
  const std::uint32_t message = std::get<1>(lane) == nobody ? 0 : std::uint32_t{1} << 31;
  return message | static_cast<std::uint32_t>(std::get<0>(lane)) << 16 | (issued_[lane]++ & 0xFFFF);
}

void Walk::communicate(const Task& task, std::uint32_t tag) {
  const Action& action = job_.deed_of(task).action;
  if (const auto* collective = std::get_if<Collective>(&action))
    return collect(*collective, tag, task.stream);
  if (const auto* send = std::get_if<Send>(&action)) {
    const Piece what = memory_.piece(send->what);
    count(Bytes{static_cast<std::int64_t>(what.bytes().size())});
    return link_.send(send->peer, {.group = group_of(send->communicator),
                                   .from = what,
                                   .tag = tag,
                                   .communicator = send->communicator,
                                   .stream = task.stream});
  }
  const auto& receive = std::get<Receive>(action);
  link_.receive(receive.peer, {.group = group_of(receive.communicator),
                               .to = memory_.piece(receive.what),
                               .tag = tag,
                               .communicator = receive.communicator,
                               .stream = task.stream});
}

void Walk::collect(const Collective& collective, std::uint32_t tag, std::uint8_t stream) {
  Exchange exchange{group_of(collective.communicator),
                    memory_.piece(collective.from),
                    memory_.piece(collective.to),
                    counts_of(collective),
                    tag,
                    collective.communicator,
                    stream};
  const bool gathers_in_place = collective.what == program::Collectives::all_gather &&
                                collective.reduction == program::Reduction::none &&
                                exchange.from == exchange.to;
  std::int64_t elements = exchange.from.count;
  const auto members = static_cast<std::int64_t>(exchange.group.size());
  if (gathers_in_place) elements = (elements + members - 1) / members;
  count(elements * size_of(exchange.from.type));
  link_.run(collective, exchange);
}

Group Walk::group_of(std::int16_t communicator) const {
  const program::Membership& member = memory_.member(communicator);
  return {*member.group, member.place};
}

/// Nothing but whole numbers of elements that fit is believed.
std::vector<std::int64_t> Walk::counts_of(const Collective& collective) const {
  const Piece numbers = memory_.piece(collective.counts);
  std::vector<std::int64_t> counts;
  const bool gathers = collective.what == program::Collectives::all_gather;
  std::int64_t left = gathers ? collective.to.count : collective.from.count;
  for (std::int64_t i = 0; i < numbers.count; ++i) {
    const double elements = reinterpret_cast<const double*>(numbers.data)[i];
    const std::int64_t mine = gathers ? collective.from.count : collective.to.count;
    const bool is_mine = i == memory_.member(collective.communicator).place;
    if (!(elements >= 0 &&
          elements <= static_cast<double>(is_mine ? std::min(left, mine) : left)) ||
        std::floor(elements) != elements)
      throw DeviceError(fmt::format(
          "{}: rank {} of its group would have {} elements, where there is room for {}",
          name_of(collective.what), i, elements, is_mine ? std::min(left, mine) : left));
    counts.push_back(static_cast<std::int64_t>(elements));
    left -= counts.back();
  }
  return counts;
}

void Walk::count(Bytes size) {
  const std::lock_guard lock(counting_);
  ++run_.sent->collectives;
  run_.sent->payload += size;
}

/// Makes `call`, which computes, and is busy until it has taken as long as this rank is told to
/// (RunOptions::compute).
template <typename Call>
void Walk::slowed(Call call) const {
  if (options_.compute <= 1) return call();
  const Duration before = processor_time();
  call();
  be_busy(scaled(processor_time() - before, options_.compute - 1));
}

/// The ranks tell each other when they reached their collectives, all of them in one list: by
/// communicator, group and order of issue; behind these, those beside the programs. A rank says
/// nothing of groups that it is not in.
void Walk::learn_starts() {
  constexpr Instant never{Duration{std::numeric_limits<std::int64_t>::min() / 2}};
  std::vector<Instant> instants;
  std::vector<std::size_t> begins(collectives_.size(), 0);  // [communicator] where its own are
  for (std::size_t c = 0; c < collectives_.size(); ++c)
    for (const std::vector<std::int32_t>& group : job_.communicators[c].groups) {
      const bool is_mine = &group == memory_.member(static_cast<std::int16_t>(c)).group;
      if (is_mine) begins[c] = instants.size();
      std::size_t issued = 0;
      if (!group.empty())
        for (const Task& task : job_.programs[job_.program_of[at(group.front())]].tasks) {
          const auto* collective = std::get_if<Collective>(&job_.deed_of(task).action);
          issued += collective != nullptr && at(collective->communicator) == c ? 1U : 0U;
        }
      for (std::size_t k = 0; k < issued; ++k)
        instants.push_back(is_mine ? run_.times[collectives_[c][k]].start : never);
    }
  const std::size_t of_programs = instants.size();
  for (const Instant arrival : streams_.arrivals_beside()) instants.push_back(arrival);
  if (instants.empty()) return;
  instants = link_.latest(std::move(instants));
  if (of_programs < instants.size())
    streams_.report_beside(std::span(instants).subspan(of_programs), run_);
  for (std::size_t c = 0; c < collectives_.size(); ++c)
    for (std::size_t k = 0; k < collectives_[c].size(); ++k) {
      TaskTimes& times = run_.times[collectives_[c][k]];
      times.start = std::min(times.end, instants[begins[c] + k]);
    }
}

}  // namespace ddpsim::execute
