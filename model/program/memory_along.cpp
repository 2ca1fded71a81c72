#include "model/program/memory_along.hpp"

#include <algorithm>
#include <map>
#include <variant>

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

std::uint8_t stream_of_network(const Job& job, const Program& program) {
  for (const Task& task : program.tasks)
    if (std::holds_alternative<Compute>(job.deed_of(task).action)) return task.stream;
  return 0;
}

MemoryAlong memory_along(const Job& job, const Program& program) {
  MemoryAlong memory;
  memory.first_pool = stream_of_network(job, program);
  for (const Buffer& buffer : job.buffers)
    if (buffer.life != Life::held && takes_memory(buffer))
      memory.begin[buffer.holds] += size_of(buffer);
  memory.changes.reserve(program.holds.size());
  for (const Hold& hold : program.holds) {
    const Buffer& buffer = job.buffers[hold.buffer];
    if (!takes_memory(buffer)) continue;
    const Bytes size = size_of(buffer);
    memory.changes.push_back(
        {hold.before, buffer.holds, hold.begins ? size : Bytes{} - size, hold.pool});
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

Bytes reserved_for(const MemoryAlong& memory) {
  struct Pool {
    Bytes now, peak;
  };
  std::map<std::uint8_t, Pool> pools;
  pools[memory.first_pool] = {memory.begin.sum(), memory.begin.sum()};
  for (const MemoryAlong::Change& change : memory.changes) {
    Pool& pool = pools[change.pool];
    pool.now += change.bytes;
    pool.peak = std::max(pool.peak, pool.now);
  }
  const std::int64_t segment = memory_segment.count;
  Bytes reserved;
  for (const auto& [stream, pool] : pools)
    reserved += (pool.peak.count + segment - 1) / segment * memory_segment;
  return reserved;
}

}  // namespace ddpsim::program
