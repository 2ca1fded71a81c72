#pragma once

// The contract of simulate.hpp, acted out as literally as possible: every rank by itself, no queue,
// no events, no clock that runs ahead. At every moment all that can begin or end does, by asking
// every task of every rank again; then everything in progress advances, in real numbers, to the
// nearest moment at which something can change. Cost: O(tasks) moments of O(tasks^2) questions.
// Without interference and shared links all times stay whole and the result is exact; with them, it
// differs from the engine's by the engine's rounding.

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/engine/simulate.hpp"

namespace ddpsim::fixtures {

class SlowJobSolver {
 public:
  SlowJobSolver(const program::Job& job, const JobCosts& costs) : job_(job) {
    for (std::size_t rank = 0; rank < job.ranks(); ++rank) {
      SlowRank& added = ranks_.emplace_back();
      added.program = &job.programs[job.program_of[rank]];
      added.costs = &costs.kinds[costs.of_rank[rank]];
      added.states.resize(added.program->tasks.size());
      for (std::size_t i = 0; i < added.states.size(); ++i) {
        note_way(rank, i);
        if (added.states[i].way != Way::none) join_meeting(rank, i);
      }
    }
  }

  /// [rank][task]; empty: the ranks wait for each other for ever.
  std::vector<std::vector<TaskTimes>> solve() {
    while (true) {
      while (change_something()) {
      }
      const Real next = next_moment();
      if (next == never) break;
      advance(next);
    }
    std::vector<std::vector<TaskTimes>> times;
    for (const SlowRank& rank : ranks_) {
      auto& its = times.emplace_back();
      for (const State& state : rank.states) {
        if (!state.ended()) return {};
        its.push_back({instant(state.issued), instant(state.enqueued), instant(state.start),
                       instant(state.end)});
      }
    }
    return times;
  }

 private:
  using Real = long double;  // picoseconds
  static constexpr Real never = std::numeric_limits<Real>::infinity();
  static constexpr Real tiny = 1e-4L;

  /// What a task communicates with: nobody, its group, or a peer.
  enum class Way : std::uint8_t { none, group, sends, receives };
  struct State {
    Real issued = never, enqueued = never, start = never, end = never;
    Real left = 0;
    bool arrived = false;
    Way way = Way::none;
    std::int16_t communicator = 0, peer = 0;
    std::size_t meeting = 0;
    bool running() const { return start != never && end == never; }
    bool ended() const { return end != never; }
    bool same_way(const State& other) const {
      return way == other.way && communicator == other.communicator && peer == other.peer;
    }
  };
  struct SlowRank {
    const program::Program* program = nullptr;
    const Costs* costs = nullptr;
    std::vector<State> states;
    const program::Task& task(std::size_t i) const { return program->tasks[i]; }
    const WorkCost& cost(std::size_t i) const { return costs->works.at(task(i).work); }
  };
  /// One operation of several ranks.
  struct Meeting {
    std::vector<std::int32_t> ranks;  // of a message: sender, receiver
    std::int16_t communicator = 0;
    bool of_two = false;
    std::size_t serial = 0;
    std::vector<std::pair<std::size_t, std::size_t>> members{};  // (rank, task)
    Real left = 0;
  };

  static Real real(Duration time) { return static_cast<Real>(time.count()); }
  static Instant instant(Real at) { return Instant{Duration{std::llround(at)}}; }
  bool reached(Real at) const { return at <= now_ + tiny; }

  void note_way(std::size_t rank, std::size_t i) {
    State& state = ranks_[rank].states[i];
    const program::Action& action = job_.deed_of(ranks_[rank].task(i)).action;
    if (const auto* collective = std::get_if<program::Collective>(&action)) {
      state.way = Way::group;
      state.communicator = collective->communicator;
    } else if (const auto* send = std::get_if<program::Send>(&action)) {
      state.way = Way::sends;
      state.communicator = send->communicator;
      state.peer = send->peer;
    } else if (const auto* receive = std::get_if<program::Receive>(&action)) {
      state.way = Way::receives;
      state.communicator = receive->communicator;
      state.peer = receive->peer;
    }
  }

  void join_meeting(std::size_t rank, std::size_t i) {
    const std::vector<State>& states = ranks_[rank].states;
    Meeting mine;
    mine.communicator = states[i].communicator;
    const auto self = static_cast<std::int32_t>(rank);
    const auto& group =
        *program::membership(job_.communicators[static_cast<std::size_t>(mine.communicator)], self)
             .group;
    mine.of_two = states[i].way != Way::group;
    if (mine.of_two) {
      mine.ranks = {self, group[static_cast<std::size_t>(states[i].peer)]};
      if (states[i].way == Way::receives) std::swap(mine.ranks[0], mine.ranks[1]);
    } else {
      mine.ranks = group;
    }
    for (std::size_t k = 0; k < i; ++k) mine.serial += states[k].same_way(states[i]) ? 1 : 0;
    std::size_t m = 0;
    while (m < meetings_.size() &&
           !(meetings_[m].communicator == mine.communicator && meetings_[m].of_two == mine.of_two &&
             meetings_[m].serial == mine.serial && meetings_[m].ranks == mine.ranks))
      ++m;
    if (m == meetings_.size()) meetings_.push_back(mine);
    meetings_[m].members.emplace_back(rank, i);
    ranks_[rank].states[i].meeting = m;
  }

  const program::Stream& stream(const SlowRank& rank, std::size_t i) const {
    return job_.streams[rank.task(i).stream];
  }
  static bool is_hosts(const SlowRank& rank, std::size_t i) { return rank.task(i).stream == 0; }
  /// Does the device, or the host, compute it, one at a time?
  bool computes(const SlowRank& rank, std::size_t i) const {
    if (is_hosts(rank, i)) return rank.cost(i).work > Duration::zero();
    return rank.states[i].way == Way::none && !stream(rank, i).beside;
  }
  bool is_beside(const SlowRank& rank, std::size_t i) const {
    return !is_hosts(rank, i) && rank.states[i].way == Way::none && stream(rank, i).beside;
  }
  bool computing(const SlowRank& rank) const {
    for (std::size_t i = 0; i < rank.states.size(); ++i)
      if (computes(rank, i) && rank.states[i].running()) return true;
    return false;
  }
  bool halted(const SlowRank& rank) const {
    for (std::size_t i = 0; i < rank.states.size(); ++i)
      if (is_beside(rank, i) && stream(rank, i).halts && rank.states[i].running()) return true;
    return false;
  }

  bool free_to_begin(const SlowRank& rank, std::size_t i) const {
    return std::ranges::all_of(rank.program->waits_for(i), [&](std::uint32_t earlier) {
      return rank.states[earlier].ended() && reached(rank.states[earlier].end);
    });
  }

  /// Have all earlier tasks of its stream begun, and are fewer of them under way than it has lanes?
  bool its_turn(const SlowRank& rank, std::size_t i) const {
    int under_way = 0;
    for (std::size_t k = 0; k < i; ++k) {
      if (rank.task(k).stream != rank.task(i).stream) continue;
      const State& state = rank.states[k];
      if (!state.arrived && state.start == never) return false;
      under_way += state.ended() ? 0 : 1;
    }
    return under_way < stream(rank, i).lanes;
  }

  /// Have all earlier ones of its communicator arrived, and is there room beside those that have
  /// not ended?
  bool may_arrive(const SlowRank& rank, std::size_t i) const {
    const State& mine = rank.states[i];
    int under_way = 0;
    for (std::size_t k = 0; k < i; ++k) {
      if (!rank.states[k].same_way(mine)) continue;
      if (!rank.states[k].arrived) return false;
      under_way += rank.states[k].ended() ? 0 : 1;
    }
    return under_way < job_.communicators[static_cast<std::size_t>(mine.communicator)].at_once;
  }

  /// All that ends at a moment does before anything begins; then the host's begins first.
  bool change_something() {
    for (SlowRank& rank : ranks_)
      for (std::size_t i = 0; i < rank.states.size(); ++i)
        if (is_enqueued(rank, i) || ends(rank, i)) return true;
    if (end_meeting()) return true;
    for (SlowRank& rank : ranks_)
      for (std::size_t i = 0; i < rank.states.size(); ++i)
        if (is_issued(rank, i) || (is_hosts(rank, i) && begins(rank, i))) return true;
    for (SlowRank& rank : ranks_)
      for (std::uint8_t stream = 1; stream < job_.streams.size(); ++stream)
        for (std::size_t i = 0; i < rank.states.size(); ++i)
          if (rank.task(i).stream == stream && begins(rank, i)) return true;
    return start_meeting();
  }

  bool is_issued(SlowRank& rank, std::size_t i) {
    State& state = rank.states[i];
    if (state.issued != never) return false;
    if (i > 0) {
      const State& before = rank.states[i - 1];
      const Real free = is_hosts(rank, i - 1) ? before.end : before.enqueued;
      if (free == never || !reached(free)) return false;
    }
    if (is_hosts(rank, i) && !free_to_begin(rank, i)) return false;
    state.issued = now_;
    return true;
  }

  bool is_enqueued(SlowRank& rank, std::size_t i) {
    State& state = rank.states[i];
    if (is_hosts(rank, i) || state.issued == never || state.enqueued != never ||
        !reached(state.issued + real(rank.cost(i).host)))
      return false;
    state.enqueued = now_;
    return true;
  }

  bool begins(SlowRank& rank, std::size_t i) {
    State& state = rank.states[i];
    const WorkCost& cost = rank.cost(i);
    if (state.issued == never || state.start != never || state.arrived) return false;
    if (is_hosts(rank, i) && !computes(rank, i)) {
      if (!reached(state.issued + real(cost.host))) return false;
      state.start = state.issued;
      state.enqueued = state.end = now_;
      return true;
    }
    if (state.way != Way::none) {
      if (!is_taken_up(rank, i) || !its_turn(rank, i) || !may_arrive(rank, i)) return false;
      return state.arrived = true;
    }
    if (!may_start(rank, i)) return false;
    state.start = now_;
    if (is_hosts(rank, i)) state.enqueued = now_;
    state.left = real(cost.work);
    return true;
  }

  bool ends(SlowRank& rank, std::size_t i) {
    State& state = rank.states[i];
    if (state.way != Way::none || !state.running() || state.left > tiny) return false;
    const bool launched =
        is_hosts(rank, i) ||
        (state.enqueued != never && reached(state.enqueued + real(rank.cost(i).last_launch)));
    if (!launched) return false;
    state.end = now_;
    return true;
  }

  bool is_taken_up(const SlowRank& rank, std::size_t i) const {
    const State& state = rank.states[i];
    return state.enqueued != never && reached(state.enqueued + real(rank.cost(i).take_up)) &&
           free_to_begin(rank, i);
  }

  bool may_start(const SlowRank& rank, std::size_t i) const {
    const WorkCost& cost = rank.cost(i);
    if (is_beside(rank, i)) {
      if (stream(rank, i).halts && halted(rank)) return false;
      return is_taken_up(rank, i) && its_turn(rank, i);
    }
    const Duration first = is_hosts(rank, i) ? cost.host : cost.first_launch;
    return reached(rank.states[i].issued + real(first)) && !computing(rank) &&
           free_to_begin(rank, i) && (is_hosts(rank, i) || its_turn(rank, i));
  }

  bool running(const Meeting& meeting) const {
    const auto [rank, task] = meeting.members.front();
    return ranks_[rank].states[task].running();
  }

  bool start_meeting() {
    for (Meeting& each : meetings_) {
      if (each.members.size() < each.ranks.size()) continue;
      const bool all = std::ranges::all_of(each.members, [&](const auto& member) {
        const State& state = ranks_[member.first].states[member.second];
        return state.arrived && state.start == never;
      });
      if (!all) continue;
      for (const auto& [rank, task] : each.members) {
        ranks_[rank].states[task].start = now_;
        each.left = std::max(each.left, real(ranks_[rank].cost(task).work));
      }
      return true;
    }
    return false;
  }

  bool end_meeting() {
    for (const Meeting& each : meetings_) {
      if (!running(each) || each.left > tiny) continue;
      for (const auto& [rank, task] : each.members) ranks_[rank].states[task].end = now_;
      return true;
    }
    return false;
  }

  /// Infinite where a kernel stands still.
  Real kernel_slowdown(const SlowRank& rank, std::size_t kernel) const {
    if (is_beside(rank, kernel)) return 1;
    if (halted(rank)) return never;
    Real slowdown = 1;
    for (const State& state : rank.states) {
      if (!state.arrived || state.ended()) continue;
      const std::size_t i = static_cast<std::size_t>(&state - rank.states.data());
      const bool moving = state.running();
      const WorkCost& cost = rank.cost(kernel);
      slowdown = std::max(
          slowdown, Real{compute_slowdown(rank.cost(i).beside, moving ? cost.memory_fraction : 0,
                                          moving ? cost.launch_rate : 0)});
    }
    return slowdown;
  }

  /// The part of a meeting that is latency.
  Real latency_of(const Meeting& meeting) const {
    Real work = 0, latency = 0;
    for (const auto& [rank, task] : meeting.members) {
      const WorkCost& cost = ranks_[rank].cost(task);
      work = std::max(work, real(cost.work));
      latency = std::max(latency, real(cost.latency));
    }
    return work == 0 ? 0 : std::min(Real{1}, latency / work);
  }

  Real meeting_slowdown(const Meeting& meeting) const {
    bool any_computes = false;
    Real beside = 1, shared = 1;
    for (const auto& [rank, task] : meeting.members) {
      any_computes = any_computes || computing(ranks_[rank]);
      beside = std::max(beside, Real{ranks_[rank].cost(task).beside.communication});
      shared = std::max(shared, transfers_slowed(ranks_[rank]));
    }
    const Real latency = latency_of(meeting);
    return (any_computes ? beside : 1) * (latency + (1 - latency) * shared);
  }

  /// How many times longer transfers take on the rank's links, so that together they fill them once
  /// and no more: by halving an interval that holds it.
  Real transfers_slowed(const SlowRank& rank) const {
    const auto filled = [&](Real slowed) {
      Real sum = 0;
      for (const State& state : rank.states) {
        if (state.way == Way::none || !state.running()) continue;
        const Real latency = latency_of(meetings_[state.meeting]), transfer = 1 - latency;
        if (transfer > 0) sum += transfer / (latency + transfer * slowed);
      }
      return sum;
    };
    Real low = 1, high = 1;
    if (filled(low) <= 1) return low;
    while (filled(high) > 1) high *= 2;
    for (int halving = 0; halving < 80; ++halving) {
      const Real middle = (low + high) / 2;
      (filled(middle) > 1 ? low : high) = middle;
    }
    return high;
  }

  Real next_moment() const {
    Real next = never;
    const auto maybe = [&](Real at) {
      if (!reached(at)) next = std::min(next, at);
    };
    for (const SlowRank& rank : ranks_) {
      for (std::size_t i = 0; i < rank.states.size(); ++i) {
        const State& state = rank.states[i];
        const WorkCost& cost = rank.cost(i);
        if (state.ended() || state.issued == never) continue;
        maybe(state.issued + real(cost.host));
        maybe(state.issued + real(cost.first_launch));
        if (state.enqueued != never) {
          maybe(state.enqueued + real(cost.last_launch));
          maybe(state.enqueued + real(cost.take_up));
        }
        if (state.way == Way::none && state.running() && state.left > tiny)
          maybe(now_ + state.left * kernel_slowdown(rank, i));
      }
    }
    for (const Meeting& each : meetings_)
      if (running(each)) maybe(now_ + each.left * meeting_slowdown(each));
    return next;
  }

  void advance(Real to) {
    const Real elapsed = to - now_;
    std::vector<std::pair<Real*, Real>> done;
    for (Meeting& each : meetings_)
      if (running(each)) done.emplace_back(&each.left, elapsed / meeting_slowdown(each));
    for (SlowRank& rank : ranks_)
      for (std::size_t i = 0; i < rank.states.size(); ++i)
        if (rank.states[i].way == Way::none && rank.states[i].running())
          done.emplace_back(&rank.states[i].left, elapsed / kernel_slowdown(rank, i));
    for (const auto& [left, amount] : done) *left = std::max(Real{0}, *left - amount);
    now_ = to;
  }

  const program::Job& job_;
  std::vector<SlowRank> ranks_;
  std::vector<Meeting> meetings_;
  Real now_ = 0;
};

}  // namespace ddpsim::fixtures
