#include "backend/execute/start_values.hpp"

#include <algorithm>
#include <cstring>
#include <random>

namespace ddpsim::execute {

using program::Buffer;
using program::Start;

namespace {

void copy(const Piece& to, const float* from) {
  if (to.type == DType::fp32) std::memcpy(to.data, from, to.bytes().size());
}

}  // namespace

std::vector<float> random_values(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::mt19937_64 random(seed);
  for (float& value : values) value = static_cast<float>(random() >> 40) * 0x1p-23F - 1.0F;
  return values;
}

StartValues::StartValues(const program::Job& job, Drawing& drawing) : job_(job), drawing_(drawing) {
  std::vector<const Buffer*> found;
  for (const Buffer& buffer : job.buffers)
    if (buffer.start == Start::parameters) found.push_back(&buffer);
  std::ranges::stable_sort(found, {}, [](const Buffer* each) { return each->index; });
  for (const Buffer* each : found) {
    parameters_.push_back({each->index, all_});
    all_ += each->elements;
  }
}

void StartValues::put(program::BufferId id, const Piece& piece) {
  const Buffer& buffer = job_.buffers[id];
  switch (buffer.start) {
    case Start::undefined:
      return;
    case Start::zeros:
      std::ranges::fill(piece.bytes(), std::byte{0});
      return;
    case Start::parameters:
      if (row_.empty()) row_ = random_values(all_, 1);
      return copy(
          piece,
          row_.data() +
              std::ranges::lower_bound(parameters_, buffer.index, {}, &Parameter::index)->begin);
    case Start::random:
      return drawing_.draw(job_, buffer.is_view() ? buffer.inside.buffer : id, piece,
                           !buffer.is_view() || buffer.inside.begin == 0);
  }
}

}  // namespace ddpsim::execute
