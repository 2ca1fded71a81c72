#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "backend/execute/piece.hpp"
#include "model/program/job.hpp"

namespace ddpsim::execute {

/// A buffer that begins as a parameter does, and where it lies: `begin` and `whole` say which part
/// of how many elements it holds. What lies behind the whole begins with zeros.
struct Beginning {
  program::BufferId buffer = program::no_buffer;
  Piece piece{};
  std::int64_t begin = 0, whole = 0;

  /// So many elements of the piece lie in the whole; what is behind them is padding.
  std::int64_t filled() const { return std::clamp<std::int64_t>(whole - begin, 0, piece.count); }
};

/// What the buffers of a rank lie in, and what they hold before any task has written them.
///
/// To implementers. All of this is done before the tasks of the next job begin.
class Storage {
 public:
  virtual ~Storage() = default;
  /// Memory of so many bytes, all zero, for `what` (for people). Throws DeviceError if there is
  /// none.
  virtual std::shared_ptr<std::byte> allocate(Bytes size, std::string_view what) = 0;
  virtual void clear(const Piece& piece) = 0;
  /// As many bytes; both may lie in one piece of memory.
  virtual void copy(const Piece& to, const Piece& from) = 0;
  /// What these parameters, or a rank's parts of them, begin with: random numbers that depend on
  /// the parameter and the place in it alone.
  virtual void put_parameters(const program::Job& job, std::span<const Beginning> parameters) = 0;
  /// As a Draw for that buffer; an empty piece: a seed is taken all the same.
  virtual void draw(const program::Job& job, program::BufferId buffer, const Piece& piece,
                    bool fresh) = 0;
};

/// The memory of one rank: each buffer of a job that is no view has its own, views lie in theirs.
/// Memory of life `held` is there all along.
///
/// Contents of life `job` stay: a buffer that any job since `forget` had too (that is equal in what
/// it holds, index, name, elements and type) begins with what that one ended with, wherever it
/// lies now. Any other begins as its start says: parameters and random numbers are the same on all
/// ranks.
class Memory {
 public:
  /// `most`: bytes that the buffers of a job may take, all together.
  Memory(std::int32_t rank, std::int64_t most) : rank_(rank), most_(most) {}

  /// Makes the buffers of the job, which has been checked. Throws std::invalid_argument, before
  /// anything changes, if they would take more than there is.
  void arrange(const program::Job& job, Storage& storage);
  /// No buffer has a predecessor any longer.
  void forget();
  /// No buffer has one that holds this.
  void forget(program::Holds what);

  /// Where a slice of the job that was arranged lies.
  Piece piece(const program::Slice& slice) const;
  /// This rank's group of a communicator, and its place there.
  const program::Membership& member(std::int16_t communicator) const {
    return members_[at(communicator)];
  }
  std::int32_t rank() const { return rank_; }

 private:
  /// What a buffer is, besides its life.
  using Identity =
      std::tuple<program::Holds, std::int32_t, std::string, std::int64_t, DType, program::Life>;
  static Identity identity_of(const program::Job& job, const program::Buffer& buffer);

  void check_size(const program::Job& job) const;
  void make_own(const program::Job& job, Storage& storage);
  void make_views(const program::Job& job);
  void begin_contents(const program::Job& job, Storage& storage);
  bool continues(const program::Job& job, program::BufferId id, Storage& storage);
  Beginning beginning(const program::Job& job, program::BufferId id) const;
  bool is_in_all_groups(const program::Job& job, program::BufferId view) const;

  std::int32_t rank_;
  std::int64_t most_;
  /// Memory by what it is for; of one identity several, where a job has equal buffers.
  std::multimap<Identity, std::shared_ptr<std::byte>> stores_;
  std::map<Identity, Piece> contents_;        ///< where they lie; of life `job`
  std::vector<Piece> buffers_;                ///< [buffer] whole
  std::vector<program::Membership> members_;  ///< [communicator]
};

}  // namespace ddpsim::execute
