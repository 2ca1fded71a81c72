#include "backend/execute/refusal.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "model/program/operands.hpp"
#include "model/program/text.hpp"

namespace ddpsim::execute {

using program::Buffer;
using program::Job;
using program::Life;
using program::Program;
using program::Slice;
using program::Start;
using program::Task;

namespace {

std::string refusal_of_buffers(const Job& job, const Device& device) {
  std::set<std::tuple<program::Holds, std::int32_t, std::int16_t, std::int64_t, DType>> kept;
  for (program::BufferId id = 0; id < job.buffers.size(); ++id) {
    const Buffer& buffer = job.buffers[id];
    if (buffer.elements == 0) continue;
    const auto says = [&](const char* what) {
      return fmt::format("buffer {} {}",
                         program::text_of(job, Slice{.buffer = id, .count = buffer.elements}),
                         what);
    };
    if (buffer.is_view() && buffer.type != job.buffers[buffer.inside.buffer].type)
      return says("has another number format than what it lies in");
    if (buffer.is_view() && buffer.life == Life::job &&
        job.buffers[buffer.inside.buffer].life != Life::job)
      return says("stays for the next job, and what it lies in does not");
    if (const std::string why = device.refusal(buffer); !why.empty())
      return fmt::format("{}: {}", says("cannot be there"), why);
    if (buffer.start == Start::random && buffer.type != DType::fp32 && buffer.type != DType::fp16 &&
        buffer.type != DType::bf16)
      return says("would begin with random numbers of a format that is not drawn");
    const bool keeps =
        buffer.life == Life::job && (!buffer.is_view() || buffer.start != Start::undefined);
    if (keeps &&
        !kept.emplace(buffer.holds, buffer.index, buffer.name, buffer.elements, buffer.type).second)
      return says("is there twice");
  }
  return "";
}

std::string refusal_of_streams(const Job& job) {
  for (const program::Communicator& communicator : job.communicators)
    if (communicator.at_once == 0)
      return fmt::format("communicator {} has no collective at a time", communicator.name);
  for (const program::Stream& stream : job.streams)
    if (stream.lanes == 0) return fmt::format("stream {} has no lanes", stream.name);
  return "";
}

/// Do both use memory of one another, without being the same?
bool overlap_in_part(const Slice& one, const Slice& other) {
  return one.buffer == other.buffer && one != other && one.begin < other.begin + other.count &&
         other.begin < one.begin + one.count;
}

/// A slice where it lies on the first rank with this program.
class Overlaps {
 public:
  Overlaps(const Job& job, std::size_t program) : job_(job) {
    const auto found = std::ranges::find(job.program_of, static_cast<std::uint16_t>(program));
    if (found != job.program_of.end())
      rank_ = static_cast<std::int32_t>(found - job.program_of.begin());
  }

  /// Does it write a part of what it reads, or some of its memory twice? Then what comes out
  /// depends on the order in which it is done.
  bool in(const Task& task) const {
    const program::Action& action = job_.deed_of(task).action;
    if (rank_ == nobody || program::communicator_of(action) != nobody) return false;
    program::Accesses all = program::accesses_of(action, job_.actions_of(task));
    for (Slice& each : all.reads) each = program::placed(job_, each, rank_);
    for (Slice& each : all.writes) each = program::placed(job_, each, rank_);
    // Sorted, so that many pieces are compared with their neighbours alone.
    std::ranges::sort(all.writes, {}, key);
    for (std::size_t i = 1; i < all.writes.size(); ++i)
      if (overlap_in_part(all.writes[i - 1], all.writes[i])) return true;
    for (const Slice& read : all.reads) {
      auto next = std::ranges::upper_bound(all.writes, key(read), {}, key);
      if (next != all.writes.end() && overlap_in_part(*next, read)) return true;
      if (next != all.writes.begin() && overlap_in_part(*std::prev(next), read)) return true;
    }
    return false;
  }

 private:
  static std::tuple<program::BufferId, std::int64_t> key(const Slice& slice) {
    return {slice.buffer, slice.begin};
  }

  const Job& job_;
  std::int32_t rank_ = nobody;
};

std::string refusal_of_reduction(const program::Collective& collective) {
  using program::Collectives, program::Reduction;
  const bool adds =
      collective.what == Collectives::all_reduce || collective.what == Collectives::reduce_scatter;
  if (adds && collective.reduction == Reduction::none) return "it does not say what to reduce by";
  if (!adds && collective.reduction != Reduction::none &&
      collective.what != Collectives::all_gather)
    return "it has nothing to reduce";
  const bool has_parts =
      collective.what == Collectives::reduce_scatter ||
      (collective.what == Collectives::all_gather && collective.reduction == Reduction::none);
  return has_parts || collective.counts.empty() ? "" : "its parts have to be alike";
}

std::string refusal_of_collective(const Job& job, const program::Collective& collective,
                                  const Link& link) {
  if (const std::string why = refusal_of_reduction(collective); !why.empty()) return why;
  if (!collective.counts.empty() && job.buffers[collective.counts.buffer].type != DType::fp64)
    return "it takes elements of each rank as fp64 numbers";
  if (!collective.counts.empty() &&
      collective.counts.count !=
          static_cast<std::int64_t>(
              job.communicators[at(collective.communicator)].groups.front().size()))
    return "it has to be told the elements of each rank";
  return link.refusal(collective, job.buffers[collective.to.buffer].type);
}

std::string refusal_of(const Job& job, const Task& task, const Device& device, const Link& link) {
  const program::Action& action = job.deed_of(task).action;
  if (const auto* collective = std::get_if<program::Collective>(&action))
    return refusal_of_collective(job, *collective, link);
  if (const auto* send = std::get_if<program::Send>(&action))
    return link.refusal(*send, job.buffers[send->what.buffer].type);
  if (const auto* receive = std::get_if<program::Receive>(&action))
    return link.refusal(*receive, job.buffers[receive->what.buffer].type);
  const bool on_host = task.stream == 0;
  if (std::holds_alternative<program::Meet>(action)) return on_host ? "" : "only hosts meet";
  if (std::holds_alternative<program::Wait>(action) ||
      std::holds_alternative<program::Pause>(action))
    return "";
  if (const auto* call = std::get_if<program::Call>(&action))
    if (call->what == program::Call::What::hook) return on_host ? "" : "only the host calls a hook";
  return device.refusal(job, task);
}

}  // namespace

std::string refusal(const Job& job, const Device& device, const Link& link,
                    const Streams& streams) {
  for (const std::string& why :
       {refusal_of_buffers(job, device), refusal_of_streams(job), streams.refusal(job)})
    if (!why.empty()) return why;
  for (const Program& program : job.programs)
    if (program.rounds != job.programs.front().rounds)
      return "some ranks would do their program more often than others";
  for (std::size_t p = 0; p < job.programs.size(); ++p) {
    const Program& program = job.programs[p];
    const Overlaps overlaps(job, p);
    for (std::size_t t = 0; t < program.tasks.size(); ++t) {
      std::string why = refusal_of(job, program.tasks[t], device, link);
      if (why.empty() && overlaps.in(program.tasks[t]))
        why = "its output overlaps its input, or itself";
      if (!why.empty()) return fmt::format("{}: {}", program::name_of_task(job, program, t), why);
    }
  }
  return "";
}

}  // namespace ddpsim::execute
