#include "backend/execute/start_values.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

namespace ddpsim::execute {

using program::Buffer;
using program::Start;

namespace {

/// The elements of the parameter that begins there, on all ranks that share it.
std::int64_t whole_elements(const program::Job& job, const Buffer& buffer) {
  if (job.parts.empty()) return buffer.elements;
  const program::Part& part = job.parts[at(buffer.index)];
  return part.of == nobody || part.is_kept_whole ? buffer.elements : part.whole;
}

}  // namespace

std::vector<float> random_values(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::mt19937_64 random(seed);
  for (float& value : values) value = static_cast<float>(random() >> 40) * 0x1p-23F - 1.0F;
  return values;
}

void put_start_values(const program::Job& job, std::span<const Beginning> parameters) {
  std::vector<const Buffer*> all;
  for (const Buffer& buffer : job.buffers)
    if (buffer.start == Start::parameters) all.push_back(&buffer);
  std::ranges::stable_sort(all, {}, [](const Buffer* each) { return each->index; });
  std::map<std::int32_t, std::int64_t> begins;  // by index, of the first of that
  std::int64_t end = 0;
  for (const Buffer* each : all) {
    begins.try_emplace(each->index, end);
    end += whole_elements(job, *each);
  }
  const std::vector<float> row = random_values(end, 1);
  for (const Beginning& each : parameters) {
    const std::int64_t first = begins.at(job.buffers[each.buffer].index) + each.begin;
    const Piece filled = each.piece.part(0, each.filled());
    if (!filled.empty()) std::memcpy(filled.data, row.data() + first, filled.bytes().size());
    const Piece rest = each.piece.part(filled.count, each.piece.count - filled.count);
    std::ranges::fill(rest.bytes(), std::byte{0});
  }
}

}  // namespace ddpsim::execute
