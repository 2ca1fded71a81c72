#pragma once

#include <vector>

#include "model/cost/interference.hpp"
#include "model/program/job.hpp"

namespace ddpsim {

/// How long a piece of work takes, on one rank, while nothing else runs.
/// The links that a collective fills, inside nodes and between them: collectives that fill none in
/// common do not slow each other.
enum class FilledLinks : std::uint8_t { none = 0, inside = 1, between = 2, all = 3 };
constexpr FilledLinks both(FilledLinks one, FilledLinks other) {
  return static_cast<FilledLinks>(static_cast<int>(one) | static_cast<int>(other));
}
constexpr bool share(FilledLinks one, FilledLinks other) {
  return (static_cast<int>(one) & static_cast<int>(other)) != 0;
}

struct WorkCost {
  Duration host{};          ///< to enqueue it (all launches), or to run it if it is the host's own
  Duration first_launch{};  ///< the part of `host` after which the first launch is enqueued
  Duration work{};          ///< on its stream; of a collective: from the last rank's arrival
  /// The work ends no earlier than this after the host enqueued the last launch.
  Duration last_launch{};
  Duration latency{};         ///< collectives: the part of `work` that is not transfer
  Duration filling{};         ///< collectives: CollectiveCost::filling
  float memory_fraction = 0;  ///< of `work`, bounded by memory bandwidth
  float launch_rate = 0;      ///< kernels: launches per second of `work`
  Interference beside{};      ///< collectives: how it and the kernels beside it slow each other
  CollectiveChoice choice{};  ///< collectives: how it runs, and what bounds it
  FilledLinks links = FilledLinks::all;
  Duration take_up{};  ///< from being enqueued to being taken up by an idle stream
};

/// How long a job's work takes: an entry for each piece.
struct Costs {
  std::vector<WorkCost> works;  ///< [Job::works]

  const WorkCost& of(const program::Task& task) const { return works[task.work]; }
};

/// The costs of a rank that computes slower by `factor`: its kernels and all its host computes, but
/// not its launches, its copies to and from the host, or what its communication threads do.
Costs slowed_down(const std::vector<Work>& works, bool synchronous, Costs costs, double factor);

}  // namespace ddpsim
