#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <boost/asio/thread_pool.hpp>

#include "model/program/action.hpp"

namespace ddpsim {

/// Threads that take a layer's output in pieces. They live as long as this object, and take the
/// scheduling class and the cores of the thread that makes it.
class ChunkPool {
 public:
  explicit ChunkPool(int threads);
  ~ChunkPool();
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  /// Copies the output from `from` to the same place of `to`; returns when all pieces are done.
  /// `to` is as long as `from`. Where the output is longer, `from` is read again from its
  /// beginning, and copied to memory of the thread's own.
  void run(const program::Chunked& output, std::span<const float> from, std::span<float> to);

 private:
  boost::asio::thread_pool pool_;
};

}  // namespace ddpsim
