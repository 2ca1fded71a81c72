#pragma once

#include <cstdint>
#include <vector>

#include "model/cost/costs.hpp"
#include "sim/engine/activity.hpp"

namespace ddpsim {

/// The network: collectives (and sends) from the first member's arrival to the end, and how they
/// and the kernels beside them slow each other.
///
/// A flight begins when the last member of its meeting arrives, and ends for all at once. Flights
/// that are under way at the same time at one rank share its links: their transfers, not their
/// latencies, take as many times longer as keeps all together from moving more than one transfer
/// alone would, and a flight as long as its slowest member has it. While any member computes, a
/// flight takes its own factor longer.
///
/// Everything that happens at an instant is told first; `settle` then sets the rates, so that two
/// things that touch at an instant never slow each other. No allocation once it has grown.
class Flights {
 public:
  struct Member {
    std::uint32_t rank = 0, task = 0;
  };

  explicit Flights(std::size_t ranks) : meetings_of_(ranks), standing_(ranks) {}

  /// These ranks meet. Returns the number of their meeting.
  std::uint32_t add_meeting(std::vector<std::uint32_t> members);

  /// A member of a meeting reaches its `serial`-th flight; the last one to do so starts it for all:
  /// they are in `begun`. `cost` must stay where it is.
  void arrive(std::uint32_t meeting, std::uint32_t serial, Member member, const WorkCost& cost,
              Instant now);
  /// The rank computes, or no longer.
  void computes(std::uint32_t rank, bool yes);
  /// How much slower the rank runs such a kernel: the most that any flight it stands at causes,
  /// begun or not.
  double felt(std::uint32_t rank, const WorkCost& kernel) const;
  bool stands(std::uint32_t rank) const { return !standing_[rank].empty(); }

  /// Ends what is over at `now`: its members are in `ended`.
  void advance(Instant now);
  /// Sets the rates from `now` on.
  void settle(Instant now);
  /// When the next one ends, if nothing changes; `never`: none is under way.
  Instant next() const { return next_; }
  static constexpr Instant never = Instant::max();

  std::vector<Member> begun, ended;  ///< whoever reads them empties them

 private:
  struct Meeting {
    std::vector<std::uint32_t> members;    // ranks
    std::vector<std::uint32_t> flights{};  // of it, begun or not
    int computing = 0;                     // members
  };
  struct Flight {
    std::uint32_t meeting = 0, serial = 0;
    std::vector<Member> arrived;
    Duration work{}, latency_time{};        // the most of those that have arrived
    FilledLinks links = FilledLinks::none;  // of all of them
    bool transferring = false;              // all have
    bool fresh = false;                     // at this instant
    double beside_compute = 1;              // its slowdown while any member computes
    double latency = 0;                     // the share of its work that no other flight slows
    Activity transfer;
    Instant ends{};  // if nothing changes
  };
  /// A flight that a rank has arrived at.
  struct Standing {
    std::uint32_t flight = 0;
    const WorkCost* cost = nullptr;
  };

  double slowed_at(const std::vector<Standing>& standing, FilledLinks links) const;
  std::uint32_t flight_of(std::uint32_t meeting, std::uint32_t serial);
  void begin(Flight& flight, std::uint32_t number, Instant now);
  void end(std::uint32_t number);
  double transfers_slowed(const Flight& flight) const;

  std::vector<Meeting> meetings_;
  std::vector<std::vector<std::uint32_t>> meetings_of_;  // [rank]
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> free_;              // of them
  std::vector<std::uint32_t> transferring_;      // of them
  std::vector<std::vector<Standing>> standing_;  // [rank]
  bool changed_ = false;                         // since rates were set
  Instant next_ = never;
};

}  // namespace ddpsim
