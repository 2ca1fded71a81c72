#include "backend/execute/start_values.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

namespace ddpsim::execute {

using program::Buffer;
using program::Start;

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
    end += each->elements;
  }
  const std::vector<float> row = random_values(end, 1);
  for (const auto& [id, piece] : parameters)
    std::memcpy(piece.data, row.data() + begins.at(job.buffers[id].index), piece.bytes().size());
}

}  // namespace ddpsim::execute
