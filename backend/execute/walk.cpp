// How a program runs for real where kernels run on the host's thread or on threads beside it.
//
// The host walks the program in order. What stands on its own stream it does; what stands on
// another, or communicates, goes to a queue (StreamThreads) in which it waits for its turn and for
// the earlier tasks it names. A Wait on the host's stream blocks the host until those have ended.
//
// Instants are taken around every task: about 50 ns each. A collective "starts" when the last rank
// of its group arrives, which no rank knows meanwhile; each notes when it arrived itself, and they
// tell each other after the run.

#include "backend/execute/walk.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <variant>

#include <fmt/format.h>

#include "backend/cpu/busy.hpp"
#include "backend/device_error.hpp"
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
           Link& link)
    : job_(job),
      program_(job.programs[job.program_of[at(memory.rank())]]),
      options_(options),
      memory_(memory),
      device_(device),
      link_(link),
      tickets_(program_.tasks.size(), 0),
      arrivals_(program_.tasks.size()),
      collectives_(job.communicators.size()),
      beside_(job, memory, link) {
  run_.times.resize(program_.tasks.size());
  run_.fingerprint = program::fingerprint(job);
  run_.sent.emplace();
  for (std::uint32_t t = 0; t < program_.tasks.size(); ++t)
    if (const auto* collective = std::get_if<Collective>(&action_of(t)))
      collectives_[at(collective->communicator)].push_back(t);
}

RankRun Walk::run() {
  arrange_streams();
  device_.begin(job_, job_.program_of[at(memory_.rank())]);
  link_.start_together();
  try {
    if (!beside_.is_empty()) beside_.begin(queue_of_[job_.beside->tasks.front().stream]);
    for (int i = 0; i < program_.rounds; ++i) round();
    beside_.computed();
    run_.computed = now() - Instant{};
    link_.threads().wait_for_all();
  } catch (...) {
    link_.disconnect();
    link_.threads().abandon();
    throw;
  }
  link_.threads().arrange(1, 1);
  run_.sent->overflows = device_.overflows();
  learn_starts();
  return std::move(run_);
}

/// A queue for each stream that this rank uses. What communicates on the host's stream has one too,
/// as threads beside the host alone may communicate.
void Walk::arrange_streams() {
  std::vector<bool> used(job_.streams.size(), false);
  for (std::uint32_t t = 0; t < program_.tasks.size(); ++t)
    if (program_.tasks[t].stream != 0 || communicates(action_of(t)))
      used[program_.tasks[t].stream] = true;
  if (job_.beside) used[job_.beside->tasks.front().stream] = true;
  std::vector<int> lanes, at_once;
  queue_of_.assign(job_.streams.size(), 0);
  for (std::size_t s = 0; s < job_.streams.size(); ++s) {
    if (!used[s]) continue;
    queue_of_[s] = lanes.size();
    lanes.push_back(s == 0 ? 1 : job_.streams[s].lanes);
  }
  if (lanes.empty()) lanes.push_back(1);
  for (const program::Communicator& communicator : job_.communicators)
    at_once.push_back(communicator.at_once);
  link_.threads().arrange(lanes, at_once);
}

void Walk::round() {
  device_.begin_round();
  std::ranges::fill(tickets_, 0);
  for (std::uint32_t t = 0; t < program_.tasks.size(); ++t) execute(t);
  if (program_.rounds == 1) return;
  for (const std::uint64_t ticket : tickets_)
    if (ticket != 0) link_.threads().wait(ticket);
}

void Walk::execute(std::uint32_t index) {
  TaskTimes& times = run_.times[index];
  times.issued = times.enqueued = now();
  if (options_.pause > Duration::zero() && index == options_.pause_before) {
    std::this_thread::sleep_for(options_.pause);
    times.enqueued = now();
  }
  const bool beside = program_.tasks[index].stream != 0;
  if (!beside && !communicates(action_of(index))) return do_on_host(index, times);
  hand_over(index, times);
  times.enqueued = now();
  if (!beside) link_.threads().wait(tickets_[index]);
}

void Walk::do_on_host(std::uint32_t index, TaskTimes& times) {
  const Task& task = program_.tasks[index];
  const Action& action = action_of(index);
  wait_for_inputs(index);
  const bool waits = std::holds_alternative<Wait>(action);
  if (waits || std::holds_alternative<Meet>(action)) {
    if (!waits) link_.meet();
    times.issued = times.enqueued = times.start = times.end = now();
    return;
  }
  if (const auto* call = std::get_if<Call>(&action);
      call != nullptr && call->what == Call::What::hook)
    return call_hook(*call, task, times);
  timed(times, by_processor(action), [&] {
    if (std::holds_alternative<Pause>(action))
      std::this_thread::sleep_for(job_.works[task.work].host);
    else
      slowed([&] { device_.run({job_, task, memory_}); });
  });
}

/// Where other threads may compute for a task, this one's processor says nothing of it.
bool Walk::by_processor(const Action& action) const {
  const auto* code = std::get_if<Plugin>(&action);
  const bool is_users = code != nullptr && code->what == Plugin::What::gradient;
  return options_.by_processor && !is_users && !std::holds_alternative<program::Chunked>(action) &&
         !std::holds_alternative<Call>(action) && !std::holds_alternative<Pause>(action);
}

void Walk::call_hook(const Call& call, const Task& task, TaskTimes& times) const {
  if (options_.hook) options_.hook(call.index, task.micro_batch);
  times.start = times.issued;
  times.enqueued = times.end = now();
}

void Walk::hand_over(std::uint32_t index, TaskTimes& times) {
  const Action& action = action_of(index);
  std::optional<std::size_t> line;
  std::uint32_t tag = 0;
  if (communicates(action)) {
    line = at(program::communicator_of(action));
    tag = next_tag(action);
  }
  tickets_[index] =
      link_.threads().submit([this, index, tag, &times] { do_beside(index, tag, times); },
                             queue_of_[program_.tasks[index].stream], awaited(index), line);
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

void Walk::do_beside(std::uint32_t index, std::uint32_t tag, TaskTimes& times) {
  const Task& task = program_.tasks[index];
  const Action& action = action_of(index);
  arrivals_[index] = times.start = now();
  if (communicates(action))
    communicate(action, tag);
  else if (std::holds_alternative<Pause>(action))
    std::this_thread::sleep_for(job_.works[task.work].host);
  else if (!std::holds_alternative<Wait>(action))
    return timed(times, by_processor(action), [&] { device_.run({job_, task, memory_}); });
  times.end = now();
}

void Walk::communicate(const Action& action, std::uint32_t tag) {
  if (const auto* collective = std::get_if<Collective>(&action)) return collect(*collective, tag);
  if (const auto* send = std::get_if<Send>(&action)) {
    const Piece what = memory_.piece(send->what);
    count(Bytes{static_cast<std::int64_t>(what.bytes().size())});
    return link_.send(send->peer,
                      {.group = group_of(send->communicator), .from = what, .tag = tag});
  }
  const auto& receive = std::get<Receive>(action);
  link_.receive(
      receive.peer,
      {.group = group_of(receive.communicator), .to = memory_.piece(receive.what), .tag = tag});
}

void Walk::collect(const Collective& collective, std::uint32_t tag) {
  Exchange exchange{group_of(collective.communicator), memory_.piece(collective.from),
                    memory_.piece(collective.to), counts_of(collective), tag};
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

std::vector<std::uint64_t> Walk::awaited(std::uint32_t index) const {
  std::vector<std::uint64_t> tickets;
  for (const std::uint32_t earlier : program_.waits_for(index))
    if (tickets_[earlier] != 0) tickets.push_back(tickets_[earlier]);
  return tickets;
}

void Walk::wait_for_inputs(std::uint32_t index) {
  for (const std::uint32_t earlier : program_.waits_for(index))
    if (tickets_[earlier] != 0) link_.threads().wait(tickets_[earlier]);
}

/// Makes `call`, which computes, from its start to its end, or (see RunOptions::by_processor) as
/// long as the processor was its own.
template <typename Call>
void Walk::timed(TaskTimes& times, bool by_processor, Call call) const {
  times.start = now();
  const Duration before = by_processor ? processor_time() : Duration::zero();
  call();
  times.end = by_processor ? times.start + (processor_time() - before) : now();
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
        instants.push_back(is_mine ? arrivals_[collectives_[c][k]] : never);
    }
  const std::size_t of_programs = instants.size();
  for (const Instant arrival : beside_.arrivals()) instants.push_back(arrival);
  if (instants.empty()) return;
  instants = link_.latest(std::move(instants));
  if (!beside_.is_empty()) beside_.report(std::span(instants).subspan(of_programs), run_);
  for (std::size_t c = 0; c < collectives_.size(); ++c)
    for (std::size_t k = 0; k < collectives_[c].size(); ++k) {
      TaskTimes& times = run_.times[collectives_[c][k]];
      times.start = std::min(times.end, instants[begins[c] + k]);
    }
}

}  // namespace ddpsim::execute
