#include "model/program/memory_along.hpp"

#include <algorithm>

namespace ddpsim::program {
namespace {

Bytes size_of(const Buffer& buffer) {
  return buffer.elements * ddpsim::size_of(buffer.type);
}

bool takes_memory(const Buffer& buffer) {
  return buffer.place == Place::device && !buffer.is_view() && buffer.elements > 0;
}

}  // namespace

Bytes MemoryByKind::sum() const {
  Bytes sum;
  for (const Bytes each : bytes_) sum += each;
  return sum;
}

MemoryAlong memory_along(const Job& job, const Program& program) {
  MemoryAlong memory;
  for (const Buffer& buffer : job.buffers)
    if (buffer.life != Life::held && takes_memory(buffer))
      memory.begin[buffer.holds] += size_of(buffer);
  memory.changes.reserve(program.holds.size());
  for (const Hold& hold : program.holds) {
    const Buffer& buffer = job.buffers[hold.buffer];
    if (!takes_memory(buffer)) continue;
    const Bytes size = size_of(buffer);
    memory.changes.push_back({hold.before, buffer.holds, hold.begins ? size : Bytes{} - size});
  }
  return memory;
}

MemoryPeak peak_of(const MemoryAlong& memory) {
  MemoryPeak peak{.at_peak = memory.begin, .most = memory.begin};
  MemoryByKind now = memory.begin;
  Bytes sum = now.sum(), highest = sum;
  for (const MemoryAlong::Change& change : memory.changes) {
    Bytes& of_kind = now[change.holds];
    of_kind += change.bytes;
    sum += change.bytes;
    peak.most[change.holds] = std::max(peak.most[change.holds], of_kind);
    if (sum <= highest) continue;
    highest = sum;
    peak.at_peak = now;
    peak.before = change.before;
  }
  return peak;
}

}  // namespace ddpsim::program
