#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/program/job.hpp"
#include "sim/engine/plan.hpp"

namespace ddpsim {

/// Ranks that do the same at the same time, as one.
///
/// Ranks of a class have one program and one list of costs, and meet ranks of the same classes in
/// every communicator, so that what one of them does all do, to the tick. Where a communicator has
/// sends and receives, ranks at different places of a group are of different classes.
struct RankClasses {
  struct Class {
    std::uint16_t program = 0;  ///< index into Job::programs
    std::uint16_t costs = 0;    ///< index into what was given
    std::int32_t first = 0;     ///< its first rank, which stands for it
  };
  /// Groups of a communicator whose ranks are of the same classes, as one.
  struct Meeting {
    std::int16_t communicator = 0;
    std::vector<std::uint32_t>
        members;  ///< classes, each once; in order of their places if sent to
  };

  std::vector<Class> classes;
  std::vector<std::uint32_t> of_rank;  ///< [rank] its class
  std::vector<Meeting> meetings;
  /// [class][communicator] its meeting; `none`: its ranks are in no group.
  std::vector<std::vector<std::uint32_t>> meeting_of;

  static constexpr std::uint32_t none = ~std::uint32_t{0};
};

/// `channels`: in which the job's ranks communicate; `costs_of`: [rank] the number of its costs.
/// Cost: each round of refinement goes once over all groups, and there are as many as it takes a
/// difference to reach all ranks it touches.
RankClasses classes_of(const program::Job& job, std::span<const JobChannel> channels,
                       std::span<const std::uint16_t> costs_of);

}  // namespace ddpsim
