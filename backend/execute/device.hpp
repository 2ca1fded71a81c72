#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/execute/memory.hpp"
#include "model/program/job.hpp"

namespace ddpsim::execute {

/// A task as a device does it.
struct Doing {
  const program::Job& job;
  const program::Task& task;
  const Memory& memory;

  const program::Action& action() const { return job.deed_of(task).action; }
  const Work& work() const { return job.works[task.work]; }
  /// The slices of a range of operands.
  std::span<const program::Slice> of(const program::Operands& operands) const {
    return job.actions_of(task).of(operands);
  }
  /// Where they lie on this rank.
  std::vector<Piece> pieces(const program::Operands& operands) const {
    std::vector<Piece> pieces;
    for (const program::Slice& each : of(operands)) pieces.push_back(memory.piece(each));
    return pieces;
  }
};

/// What a rank computes with, and moves memory.
///
/// To implementers. `run` is called where the rank's Streams have it: on the host thread, or on
/// threads beside it, several at a time. No two tasks at a time work on the same memory.
class Device : public Storage {
 public:
  /// Why it cannot do what the task says; empty: it can. Not asked of waits and communication.
  virtual std::string refusal(const program::Job& job, const program::Task& task) const = 0;
  /// Why it has no such memory; empty: it has.
  virtual std::string refusal(const program::Buffer& buffer) const = 0;
  /// A job begins, `job.programs[program]` of which is this rank's.
  virtual void begin(const program::Job& job, std::size_t program) = 0;
  /// A round of the program begins.
  virtual void begin_round() = 0;
  virtual void run(const Doing& doing) = 0;
  /// 16-bit values that became infinite or NaN since the last call, though what they were made from
  /// was finite; 0 where nobody counts them.
  virtual std::int64_t overflows() = 0;
};

}  // namespace ddpsim::execute
