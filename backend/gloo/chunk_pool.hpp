#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <boost/asio/thread_pool.hpp>

#include "model/schedule/user_hook.hpp"

namespace ddpsim {

/// Threads that take a layer's output in pieces. They live as long as this object, and take the
/// scheduling class and the cores of the thread that makes it.
class ChunkPool {
 public:
  explicit ChunkPool(int threads);
  ~ChunkPool();
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  /// Copies `output` bytes of `from` to the same place of `to`, in `chunks.count` pieces of equal
  /// length, each by one thread, which is busy for its share of `chunks.time` besides; returns when
  /// all are done. `to` is as long as `from`. Where `output` is longer, `from` is read again from
  /// its beginning, and copied to memory of the thread's own.
  void run(const Chunks& chunks, Bytes output, std::span<const float> from, std::span<float> to);

 private:
  boost::asio::thread_pool pool_;
};

}  // namespace ddpsim
