#include "backend/execute/memory.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

#include <fmt/format.h>

#include "backend/device_error.hpp"
#include "backend/execute/start_values.hpp"

namespace ddpsim::execute {

using program::Buffer;
using program::BufferId;
using program::Holds;
using program::Job;
using program::Life;
using program::Slice;
using program::Start;

namespace {

std::size_t bytes_of(const Buffer& buffer) {
  return static_cast<std::size_t>(buffer.elements * size_of(buffer.type).count);
}

}  // namespace

Memory::Identity Memory::identity_of(const Job& job, const Buffer& buffer) {
  const std::string& name = job.labels[at(buffer.name)];
  const bool of_hook = buffer.holds == Holds::hook;
  return {buffer.holds,    buffer.index, of_hook ? name + "\n" + job.state : name,
          buffer.elements, buffer.type,  buffer.life};
}

void Memory::forget() {
  stores_.clear();
  contents_.clear();
  buffers_.clear();
}

void Memory::check_size(const Job& job) const {
  std::int64_t left = most_;
  for (const Buffer& buffer : job.buffers) {
    if (buffer.is_view()) continue;
    const std::int64_t element = size_of(buffer.type).count;
    if (buffer.elements > left / element)
      throw std::invalid_argument(
          fmt::format("the job's buffers take more than the {:.1f} GiB that a rank here may use",
                      static_cast<double>(most_) / (1 << 30)));
    left -= buffer.elements * element;
  }
}

void Memory::arrange(const Job& job, Drawing& drawing) {
  check_size(job);
  members_.clear();
  for (const program::Communicator& communicator : job.communicators)
    members_.push_back(program::membership(communicator, rank_));
  buffers_.assign(job.buffers.size(), {});
  make_own(job);
  make_views(job);
  begin_contents(job, drawing);
}

/// Takes what the jobs before left, and allocates the rest. What only an earlier step needed goes.
void Memory::make_own(const Job& job) {
  std::multimap<Identity, std::unique_ptr<std::byte[]>> used;
  for (BufferId id = 0; id < job.buffers.size(); ++id) {
    const Buffer& buffer = job.buffers[id];
    if (buffer.is_view() || buffer.elements == 0) continue;
    auto store = stores_.extract(identity_of(job, buffer));
    if (store.empty()) {
      std::unique_ptr<std::byte[]> made(new (std::nothrow) std::byte[bytes_of(buffer)]());
      if (!made)
        throw DeviceError(
            fmt::format("there is no memory for a buffer of {} bytes", bytes_of(buffer)));
      buffers_[id] = {buffer.type, made.get(), buffer.elements};
      used.emplace(identity_of(job, buffer), std::move(made));
    } else {
      buffers_[id] = {buffer.type, store.mapped().get(), buffer.elements};
      used.insert(std::move(store));
    }
  }
  std::erase_if(stores_,
                [](const auto& store) { return std::get<Life>(store.first) != Life::job; });
  stores_.merge(used);
}

void Memory::make_views(const Job& job) {
  for (BufferId id = 0; id < job.buffers.size(); ++id) {
    const Buffer& buffer = job.buffers[id];
    if (!buffer.is_view() || buffer.elements == 0 || !is_in_all_groups(job, id)) continue;
    const Slice whole = program::placed(job, {.buffer = id, .count = buffer.elements}, rank_);
    buffers_[id] = buffers_[whole.buffer].part(whole.begin, whole.count);
  }
}

/// Is this rank in the groups of whose parts the view is? Else its program does not use it.
bool Memory::is_in_all_groups(const Job& job, BufferId view) const {
  for (const Slice* slice = &job.buffers[view].inside; slice->buffer != program::no_buffer;
       slice = &job.buffers[slice->buffer].inside)
    if (slice->part_of != nobody && members_[at(slice->part_of)].group == nullptr) return false;
  return true;
}

/// Contents that stay move to where they lie now; all others begin as they should. Views come last:
/// they say more than what they lie in.
void Memory::begin_contents(const Job& job, Drawing& drawing) {
  StartValues values(job, drawing);
  for (const bool views : {false, true})
    for (BufferId id = 0; id < job.buffers.size(); ++id)
      if (job.buffers[id].is_view() == views) begin_content(job, id, values);
}

void Memory::begin_content(const Job& job, BufferId id, StartValues& values) {
  const Buffer& buffer = job.buffers[id];
  const Piece piece = buffers_[id];
  if (buffer.is_view() && buffer.start == Start::undefined) return;
  if (piece.empty() && buffer.start != Start::random) return;
  if (buffer.life != Life::job) return values.put(id, piece);
  const auto [known, is_new] = contents_.try_emplace(identity_of(job, buffer), piece);
  if (is_new)
    values.put(id, piece);
  else if (known->second.data != piece.data)
    std::memmove(piece.data, known->second.data, bytes_of(buffer));
  known->second = piece;
}

Piece Memory::piece(const Slice& slice) const {
  if (slice.empty()) return {};
  std::int64_t begin = slice.begin;
  if (slice.part_of != nobody) begin += slice.count * members_[at(slice.part_of)].place;
  return buffers_[slice.buffer].part(begin, slice.count);
}

}  // namespace ddpsim::execute
