#include "model/program/job.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "model/program/text.hpp"

namespace ddpsim::program {

Operands Actions::add(std::span<const Slice> operands) {
  const auto begin = static_cast<std::uint32_t>(slices.size());
  slices.insert(slices.end(), operands.begin(), operands.end());
  return {begin, static_cast<std::uint32_t>(operands.size())};
}

std::vector<bool> deeds_of_all(const Job& job) {
  std::vector<std::size_t> programs(job.known_deeds() + job.own.deeds.size(), 0);
  for (std::size_t kind = 0; kind < job.programs.size(); ++kind)
    for (const Task& task : job.programs[kind].tasks)
      if (programs[task.deed] == kind) ++programs[task.deed];
  std::vector<bool> of_all;
  for (const std::size_t count : programs) of_all.push_back(count == job.programs.size());
  return of_all;
}

std::vector<std::int32_t> groups_of_parameters(const Job& job, std::size_t parameters) {
  std::vector<std::int32_t> group_of(parameters, nobody);
  for (std::size_t g = 0; g < job.groups.size(); ++g)
    for (const std::int32_t parameter : job.groups[g].parameters)
      group_of[at(parameter)] = static_cast<std::int32_t>(g);
  return group_of;
}

Membership membership(const Communicator& communicator, std::int32_t rank) {
  for (const std::vector<std::int32_t>& group : communicator.groups)
    if (const auto found = std::ranges::find(group, rank); found != group.end())
      return {&group, static_cast<std::int32_t>(found - group.begin())};
  return {};
}

GradientRange gradient_of_rank(const Job& job, std::int32_t rank, std::size_t parameter) {
  const std::int64_t each = job.gradients[parameter].count;
  if (job.parts.empty() || job.parts[parameter].of == nobody) return {0, each, 0};
  const Part& part = job.parts[parameter];
  const std::int64_t mine = membership(job.communicators[at(part.of)], rank).place * each;
  const std::int64_t from = std::max(part.begin, mine);
  const std::int64_t to = std::min(part.begin + part.whole, mine + each);
  if (from >= to) return {part.whole, 0, 0};
  return {from - part.begin, to - from, from - mine};
}

namespace {

/// Moves a part to where it lies for the rank.
Slice without_part(const Job& job, const Slice& whole, Slice slice, std::int32_t rank) {
  if (slice.part_of == nobody) return slice;
  const Communicator& communicator = job.communicators[at(slice.part_of)];
  const Membership member = membership(communicator, rank);
  if (member.group == nullptr)
    throw std::invalid_argument(fmt::format("{}: rank {} is in no group of {}", text_of(job, whole),
                                            rank, communicator.name));
  slice.begin += slice.count * member.place;
  slice.part_of = static_cast<std::int16_t>(nobody);
  return slice;
}

}  // namespace

Slice placed(const Job& job, const Slice& slice, std::int32_t rank) {
  if (slice.empty()) return slice;
  Slice found = without_part(job, slice, slice, rank);
  for (std::size_t views = 0; views <= job.buffers.size(); ++views) {
    const Buffer& buffer = job.buffers[found.buffer];
    if (found.begin < 0 || found.begin > buffer.elements - found.count)
      throw std::invalid_argument(fmt::format("{} is beyond the {} elements of its buffer",
                                              text_of(job, slice), buffer.elements));
    if (buffer.inside.buffer == no_buffer) return found;
    if (buffer.inside.count != buffer.elements)
      throw std::invalid_argument(fmt::format("{}: a view of {} elements of {}, which has {}",
                                              text_of(job, slice), buffer.elements,
                                              text_of(job, buffer.inside), buffer.inside.count));
    const Slice outer = without_part(job, slice, buffer.inside, rank);
    found.buffer = outer.buffer;
    found.begin += outer.begin;
  }
  throw std::invalid_argument(fmt::format("{} is a view that lies in itself", text_of(job, slice)));
}

}  // namespace ddpsim::program
