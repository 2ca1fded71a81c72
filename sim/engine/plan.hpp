#pragma once

#include <cstdint>
#include <vector>

#include "model/program/job.hpp"

namespace ddpsim {

/// What ranks communicate in, in the order of issue: with all of a group, or with one of it.
struct JobChannel {
  enum class With : std::uint8_t { group, to_peer, from_peer };
  std::int16_t communicator = 0, peer = 0;
  With with = With::group;

  auto operator<=>(const JobChannel&) const = default;
};

/// A program as the engine walks it: lists that are made once and shared by all ranks that run it.
struct Plan {
  static constexpr std::uint32_t no_task = ~std::uint32_t{0};
  static constexpr std::uint16_t no_channel = 0xffff;

  std::vector<std::vector<std::uint32_t>> of_stream;   ///< [stream] its tasks; behind them no_task
  std::vector<std::vector<std::uint32_t>> of_channel;  ///< [channel] the same
  std::vector<std::uint16_t> channel;                  ///< [task] index into Plans::channels
};

struct Plans {
  std::vector<JobChannel> channels;
  std::vector<Plan> of_program;  ///< [kind of rank]
};

/// Throws std::invalid_argument for a program that is repeated, a task that waits for a later one,
/// and a collective on the host's own stream.
Plans plans_of(const program::Job& job);

}  // namespace ddpsim
