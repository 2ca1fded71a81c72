#include "backend/device/cpu/chunk_pool.hpp"

#include <algorithm>
#include <latch>
#include <vector>

#include <boost/asio/post.hpp>

#include "backend/cpu/busy.hpp"

namespace ddpsim {
namespace {

/// Memory of this thread for results that repeat others: two threads may work on the same place of
/// the output.
std::span<float> repeats_of_thread(std::size_t length) {
  thread_local std::vector<float> repeats;
  if (repeats.size() < length) repeats.resize(length);
  return repeats;
}

}  // namespace

ChunkPool::ChunkPool(int threads) : pool_(static_cast<std::size_t>(threads)) {}

ChunkPool::~ChunkPool() {
  pool_.join();
}

void ChunkPool::run(const program::Chunked& output, std::span<const float> from,
                    std::span<float> to) {
  const std::int64_t values = output.output.count / static_cast<std::int64_t>(sizeof(float));
  const auto length = static_cast<std::int64_t>(from.size());
  std::latch left(output.pieces);
  for (std::int64_t c = 0; c < output.pieces; ++c)
    boost::asio::post(
        pool_, [&, begin = values * c / output.pieces, end = values * (c + 1) / output.pieces] {
          for (std::int64_t at = begin; at < end;) {
            const std::int64_t place = at % length;
            const std::int64_t piece = std::min(end - at, length - place);
            const std::span<float> into = at < length ? to : repeats_of_thread(from.size());
            std::copy_n(from.begin() + place, piece, into.begin() + place);
            at += piece;
          }
          if (output.time > Duration::zero()) be_busy(output.time / output.pieces);
          left.count_down();
        });
  left.wait();
}

}  // namespace ddpsim
