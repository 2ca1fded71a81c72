#include "tests/model/program/plain_check.hpp"

#include <bitset>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "model/program/operands.hpp"

namespace ddpsim::program {
namespace {

constexpr std::size_t most_tasks = 64;
using Set = std::bitset<most_tasks>;

struct Element {
  bool defined = false;
  Set readers, writers;
};
struct Memory {
  std::vector<Element> elements;
  bool is_there = true;
  Set users;
  Set before;  ///< users of memory that it may have
};

class PlainCheck {
 public:
  PlainCheck(const Job& job, std::int32_t rank)
      : job_(job),
        rank_(rank),
        program_(job.programs[job.program_of[at(rank)]]),
        ended_(program_.tasks.size()),
        gone_(job.streams.size()) {
    for (const Buffer& buffer : job.buffers) {
      memory_.push_back(fresh(buffer));
      memory_.back().is_there = buffer.life != Life::held;
    }
  }

  std::string run() {
    auto hold = program_.holds.begin();
    for (task_ = 0; task_ < program_.tasks.size() && wrong_.empty(); ++task_) {
      for (; hold != program_.holds.end() && hold->before <= task_; ++hold) come_or_go(*hold);
      ended_[task_] = ended_before();
      use_memory();
    }
    for (; hold != program_.holds.end(); ++hold) come_or_go(*hold);
    return wrong_;
  }

 private:
  static Memory fresh(const Buffer& buffer) {
    Memory memory;
    memory.elements.resize(static_cast<std::size_t>(buffer.elements));
    for (Element& each : memory.elements) each.defined = buffer.start != Start::undefined;
    return memory;
  }
  const Action& action_of(std::size_t task) const {
    return job_.deed_of(program_.tasks[task]).action;
  }

  /// The latest task before the current one that `is`.
  template <typename Is>
  std::optional<std::size_t> latest(const Is& is) const {
    for (std::size_t t = task_; t-- > 0;)
      if (is(t)) return t;
    return std::nullopt;
  }

  Set ended_before() const {
    Set all;
    const auto has_ended = [&](std::size_t earlier) {
      all |= ended_[earlier];
      all.set(earlier);
    };
    const auto stream_of = [&](std::size_t t) { return program_.tasks[t].stream; };
    if (const auto host = latest([&](std::size_t t) { return stream_of(t) == 0; }))
      has_ended(*host);
    if (const auto before =
            latest([&](std::size_t t) { return stream_of(t) == stream_of(task_); })) {
      all |= ended_[*before];
      if (job_.streams[stream_of(task_)].lanes == 1) has_ended(*before);
    }
    for (const std::uint32_t earlier : program_.waits_for(task_)) has_ended(earlier);
    const std::int16_t communicator = communicator_of(action_of(task_));
    if (communicator != nobody && job_.communicators[at(communicator)].at_once == 1)
      if (const auto before =
              latest([&](std::size_t t) { return communicator_of(action_of(t)) == communicator; }))
        has_ended(*before);
    return all;
  }

  void use_memory() {
    const std::int16_t communicator = communicator_of(action_of(task_));
    const std::int32_t place = communicator == nobody
                                   ? nobody
                                   : membership(job_.communicators[at(communicator)], rank_).place;
    const Accesses accesses =
        accesses_of(action_of(task_), job_.actions_of(program_.tasks[task_]), place);
    Set open = ~ended_[task_];
    open.reset(task_);
    for (const std::size_t each : unawaited_) open.reset(each);
    const bool is_awaited = !is_unawaited(action_of(task_));
    for (const Slice& slice : accesses.reads)
      for (Element* element : elements_of(slice)) {
        if (!element->defined) wrong("reads what nothing has written");
        if ((element->writers & open).any()) wrong("reads what may still be written");
      }
    for (const Slice& slice : accesses.writes)
      for (Element* element : elements_of(slice)) {
        if (((element->writers | element->readers) & open).any()) wrong("writes what is in use");
        element->defined = true;
        element->writers.set(task_, is_awaited);
      }
    for (const Slice& slice : accesses.reads)
      for (Element* element : elements_of(slice)) element->readers.set(task_, is_awaited);
    if (!is_awaited) unawaited_.push_back(task_);
  }

  std::vector<Element*> elements_of(const Slice& slice) {
    const Slice lies = placed(job_, slice, rank_);
    Memory& memory = memory_[lies.buffer];
    if (!memory.is_there) wrong("uses what is not there");
    if ((memory.before & ~ended_[task_]).any()) wrong("uses memory that is in use");
    memory.users.set(task_);
    std::vector<Element*> found;
    for (std::int64_t i = lies.begin; i < lies.begin + lies.count; ++i)
      found.push_back(&memory.elements[static_cast<std::size_t>(i)]);
    return found;
  }

  void come_or_go(const Hold& hold) {
    Memory& memory = memory_[hold.buffer];
    if (memory.is_there == hold.begins) wrong("comes or goes twice");
    if (hold.begins) {
      memory = fresh(job_.buffers[hold.buffer]);
      memory.before = gone_[hold.pool];
      return;
    }
    gone_[hold.pool] |= memory.before | memory.users;
    memory.is_there = false;
  }

  void wrong(const char* what) {
    if (wrong_.empty()) wrong_ = fmt::format("task {} of rank {} {}", task_, rank_, what);
  }

  const Job& job_;
  std::int32_t rank_;
  const Program& program_;
  std::size_t task_ = 0;
  std::vector<Set> ended_;  ///< [task] when it begins
  std::vector<std::size_t> unawaited_;
  std::vector<Memory> memory_;  ///< [buffer]
  std::vector<Set> gone_;       ///< [pool] users of memory that went there
  std::string wrong_;
};

/// What a rank communicates in a communicator, in order: with the group, or with the rank at the
/// place `peer` in one of the two directions. A send and the receive that it meets are alike.
std::vector<std::string> communicated(const Job& job, std::int32_t rank, std::int16_t communicator,
                                      std::int32_t peer = nobody, bool away = false) {
  std::vector<std::string> all;
  const std::int32_t place = membership(job.communicators[at(communicator)], rank).place;
  for (const Task& task : job.programs[job.program_of[at(rank)]].tasks) {
    const Action& action = job.deed_of(task).action;
    if (communicator_of(action) != communicator) continue;
    const auto* send = std::get_if<Send>(&action);
    const auto* receive = std::get_if<Receive>(&action);
    const auto* collective = std::get_if<Collective>(&action);
    if (send != nullptr && send->peer == peer && away)
      all.push_back(fmt::format("{} elements from {} to {}", send->what.count, place, peer));
    if (receive != nullptr && receive->peer == peer && !away)
      all.push_back(fmt::format("{} elements from {} to {}", receive->what.count, peer, place));
    if (collective != nullptr && peer == nobody)
      all.push_back(fmt::format("{} of {} into {} elements of {}, {}, root {}", name_of(action),
                                collective->from.count, collective->to.count,
                                name_of(job.buffers[collective->to.buffer].type),
                                name_of(collective->reduction), collective->root));
  }
  return all;
}

}  // namespace

std::string plainly_wrong_in(const Job& job) {
  for (std::int32_t rank = 0; at(rank) < job.ranks(); ++rank)
    if (std::string wrong = PlainCheck(job, rank).run(); !wrong.empty()) return wrong;
  for (std::int16_t c = 0; at(c) < job.communicators.size(); ++c)
    for (const std::vector<std::int32_t>& group : job.communicators[at(c)].groups)
      for (std::int32_t one = 0; at(one) < group.size(); ++one)
        for (std::int32_t other = 0; other < one; ++other) {
          const std::int32_t rank = group[at(one)], peer = group[at(other)];
          if (communicated(job, rank, c) != communicated(job, peer, c) ||
              communicated(job, rank, c, other, true) != communicated(job, peer, c, one, false) ||
              communicated(job, rank, c, other, false) != communicated(job, peer, c, one, true))
            return fmt::format("ranks {} and {} do not do the same in communicator {}", peer, rank,
                               c);
        }
  return "";
}

}  // namespace ddpsim::program
