#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "backend/execute/piece.hpp"

namespace ddpsim {

/// Memory for the time of a call, undefined at first. The thread keeps it for its next calls: on a
/// virtual machine pages that are new cost more than the numbers that are put there.
class Room {
 public:
  explicit Room(std::size_t bytes) {
    if (!kept().empty()) {
      memory_ = std::move(kept().back());
      kept().pop_back();
    }
    if (memory_.size < bytes) memory_ = {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
  }
  Room(DType type, std::int64_t count)
      : Room(static_cast<std::size_t>(count * size_of(type).count)) {
    piece_ = {type, memory_.bytes.get(), count};
  }
  ~Room() { kept().push_back(std::move(memory_)); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  std::byte* data() const { return memory_.bytes.get(); }
  const execute::Piece& piece() const { return piece_; }

 private:
  struct Memory {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  };
  static std::vector<Memory>& kept() {
    thread_local std::vector<Memory> all;
    return all;
  }

  Memory memory_;
  execute::Piece piece_{};
};

}  // namespace ddpsim
