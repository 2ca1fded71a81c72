#include "backend/execute/memory.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

namespace ddpsim::execute {

using program::Buffer;
using program::BufferId;
using program::Holds;
using program::Job;
using program::Life;
using program::Slice;
using program::Start;

namespace {

Bytes bytes_of(const Buffer& buffer) {
  return buffer.elements * size_of(buffer.type);
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

void Memory::forget(Holds what) {
  std::erase_if(contents_, [what](const auto& each) { return std::get<0>(each.first) == what; });
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

void Memory::arrange(const Job& job, Storage& storage) {
  check_size(job);
  members_.clear();
  for (const program::Communicator& communicator : job.communicators)
    members_.push_back(program::membership(communicator, rank_));
  buffers_.assign(job.buffers.size(), {});
  make_own(job, storage);
  make_views(job);
  begin_contents(job, storage);
}

/// Takes what the jobs before left, lets go what only an earlier step needed, and allocates the
/// rest.
void Memory::make_own(const Job& job, Storage& storage) {
  std::multimap<Identity, std::shared_ptr<std::byte>> used;
  const auto use = [&](BufferId id, auto store) {
    const Buffer& buffer = job.buffers[id];
    buffers_[id] = {buffer.type, store.get(), buffer.elements};
    used.emplace(identity_of(job, buffer), std::move(store));
  };
  std::vector<BufferId> is_missing;
  for (BufferId id = 0; id < job.buffers.size(); ++id) {
    const Buffer& buffer = job.buffers[id];
    if (buffer.is_view() || buffer.elements == 0) continue;
    auto store = stores_.extract(identity_of(job, buffer));
    if (store.empty())
      is_missing.push_back(id);
    else
      use(id, std::move(store.mapped()));
  }
  std::erase_if(stores_,
                [](const auto& store) { return std::get<Life>(store.first) != Life::job; });
  for (const BufferId id : is_missing)
    use(id, storage.allocate(bytes_of(job.buffers[id]), program::name_of(job.buffers[id].holds)));
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
void Memory::begin_contents(const Job& job, Storage& storage) {
  std::vector<Beginning> parameters;
  for (const bool views : {false, true})
    for (BufferId id = 0; id < job.buffers.size(); ++id) {
      const Buffer& buffer = job.buffers[id];
      const Piece piece = buffers_[id];
      if (buffer.is_view() != views || continues(job, id, storage)) continue;
      switch (buffer.start) {
        case Start::undefined:
          break;
        case Start::zeros:
          storage.clear(piece);
          break;
        case Start::parameters:
          if (const Beginning found = beginning(job, id); !found.piece.empty())
            parameters.push_back(found);
          break;
        case Start::random:
          storage.draw(job, buffer.is_view() ? buffer.inside.buffer : id, piece,
                       !buffer.is_view() || buffer.inside.begin == 0);
          break;
      }
    }
  if (!parameters.empty()) storage.put_parameters(job, parameters);
}

Beginning Memory::beginning(const Job& job, BufferId id) const {
  const Buffer& buffer = job.buffers[id];
  Beginning beginning{id, buffers_[id], 0, buffer.elements};
  if (job.parts.empty()) return beginning;
  const program::Part& part = job.parts[at(buffer.index)];
  if (part.of == nobody || part.is_kept_whole) return beginning;
  beginning.begin = members_[at(part.of)].place * buffer.elements - part.begin;
  beginning.whole = part.whole;
  if (beginning.begin < 0) {  // others lie before it
    const std::int64_t before = std::min(-beginning.begin, beginning.piece.count);
    beginning.piece = beginning.piece.part(before, beginning.piece.count - before);
    beginning.begin = 0;
  }
  // And what lies behind it in a view is others', too.
  if (buffer.is_view()) beginning.piece = beginning.piece.part(0, beginning.filled());
  return beginning;
}

/// Need nothing be put there, for its contents stay or it says nothing?
bool Memory::continues(const Job& job, BufferId id, Storage& storage) {
  const Buffer& buffer = job.buffers[id];
  const Piece piece = buffers_[id];
  if (buffer.is_view() && buffer.start == Start::undefined) return true;
  if (piece.empty() && buffer.start != Start::random) return true;
  if (buffer.life != Life::job) return false;
  const auto [known, is_new] = contents_.try_emplace(identity_of(job, buffer), piece);
  if (is_new) return false;
  if (known->second.data != piece.data) storage.copy(piece, known->second);
  known->second = piece;
  return true;
}

Piece Memory::piece(const Slice& slice) const {
  if (slice.empty()) return {};
  std::int64_t begin = slice.begin;
  if (slice.part_of != nobody) begin += slice.count * members_[at(slice.part_of)].place;
  return buffers_[slice.buffer].part(begin, slice.count);
}

}  // namespace ddpsim::execute
