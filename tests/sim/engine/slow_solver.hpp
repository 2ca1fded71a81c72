#pragma once

// The contract of simulate.hpp, acted out as literally as possible: no queue, no events, no clock
// that runs ahead. At every moment all that can begin or end does, by asking every task of every
// rank again; then everything in progress advances, in real numbers, to the nearest moment at which
// something can change. Cost: O(tasks) moments of O(tasks) questions. Without interference all
// times stay whole and the result is exact; with it, it differs from the engine's by the engine's
// rounding.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <vector>

#include "sim/engine/simulate.hpp"

namespace ddpsim::fixtures {

class SlowSolver {
 public:
  explicit SlowSolver(std::span<const RankPlan> plans) {
    for (const RankPlan& plan : plans)
      ranks_.push_back(
          {plan.schedule, plan.costs, std::vector<State>(plan.schedule->tasks.size())});
    // The k-th of a communicator.
    std::map<std::pair<int, std::size_t>, Collective> collectives;
    for (const SlowRank& rank : ranks_) {
      std::map<int, std::size_t> count;
      for (std::size_t i = 0; i < rank.states.size(); ++i) {
        if (rank.task(i).stream != Stream::communication) continue;
        const int communicator = rank.communicator(i);
        collectives[{communicator, count[communicator]++}].tasks.push_back(i);
      }
    }
    for (auto& [place, each] : collectives) collectives_.push_back(std::move(each));
  }

  Timeline solve() {
    while (true) {
      while (change_something()) {
      }
      const Real next = next_moment();
      if (next == never) break;
      advance(next);
    }
    Timeline timeline;
    for (const SlowRank& rank : ranks_) {
      auto& times = timeline.ranks.emplace_back();
      for (const State& state : rank.states) {
        if (!state.ended()) throw std::logic_error("the slow solver is stuck");
        times.push_back({instant(state.issued), instant(state.enqueued), instant(state.start),
                         instant(state.end)});
        timeline.end = std::max({timeline.end, times.back().end, times.back().enqueued});
      }
    }
    return timeline;
  }

 private:
  using Real = long double;  // picoseconds
  static constexpr Real never = std::numeric_limits<Real>::infinity();
  static constexpr Real tiny = 1e-4L;

  struct State {
    Real issued = never, enqueued = never, start = never, end = never;
    Real left = 0;
    bool arrived = false;
    bool running() const { return start != never && end == never; }
    bool ended() const { return end != never; }
  };
  struct SlowRank {
    const Schedule* schedule;
    const Costs* costs;
    std::vector<State> states;
    const Task& task(std::size_t i) const { return schedule->tasks[i]; }
    const WorkCost& cost(std::size_t i) const { return costs->works.at(task(i).work); }
    const Work& work(std::size_t i) const { return schedule->works.at(task(i).work); }
    int communicator(std::size_t i) const { return work(i).communicator; }
  };

  static Real real(Duration time) { return static_cast<Real>(time.count()); }
  static Instant instant(Real at) { return Instant{Duration{std::llround(at)}}; }
  bool reached(Real at) const { return at <= now_ + tiny; }

  bool free_to_begin(const SlowRank& rank, std::size_t i) const {
    return std::ranges::all_of(rank.schedule->waits_for(rank.task(i)), [&](std::uint32_t earlier) {
      return rank.states[earlier].ended() && reached(rank.states[earlier].end);
    });
  }

  /// A collective's stream does not see it before, once it is enqueued.
  static Real taken_up(const SlowRank& rank, std::size_t i) {
    const Duration handover = rank.task(i).handed_over ? rank.costs->handover : Duration::zero();
    return rank.states[i].enqueued + real(handover);
  }

  /// Has every earlier task of the stream of task `i` ended?
  static bool at_head(const SlowRank& rank, std::size_t i) {
    for (std::size_t k = 0; k < i; ++k)
      if (rank.task(k).stream == rank.task(i).stream && !rank.states[k].ended()) return false;
    return true;
  }

  /// Have all earlier collectives of its communicator arrived, and is there room beside those that
  /// have not ended?
  static bool may_arrive(const SlowRank& rank, std::size_t i) {
    int in_flight = 0;
    for (std::size_t k = 0; k < i; ++k) {
      if (rank.task(k).stream != Stream::communication ||
          rank.communicator(k) != rank.communicator(i))
        continue;
      if (!rank.states[k].arrived) return false;
      in_flight += rank.states[k].ended() ? 0 : 1;
    }
    return in_flight < rank.schedule->collectives_at_once;
  }

  static bool computes(const SlowRank& rank, std::size_t i) {
    const Stream stream = rank.task(i).stream;
    return stream == Stream::compute ||
           (stream == Stream::host && rank.cost(i).work > Duration::zero());
  }
  static bool computing(const SlowRank& rank) {
    for (std::size_t i = 0; i < rank.states.size(); ++i)
      if (computes(rank, i) && rank.states[i].running()) return true;
    return false;
  }

  bool change_something() {
    for (SlowRank& rank : ranks_)
      for (std::size_t i = 0; i < rank.states.size(); ++i)
        if (change(rank, i)) return true;
    return start_collective() || end_collective();
  }

  bool change(SlowRank& rank, std::size_t i) {
    const Task& task = rank.task(i);
    const WorkCost& cost = rank.cost(i);
    State& state = rank.states[i];
    if (state.ended()) return false;
    if (state.issued == never) {  // the host's turn?
      if (i > 0) {
        const State& before = rank.states[i - 1];
        const Real free = rank.task(i - 1).stream == Stream::host ? before.end : before.enqueued;
        if (free == never || !reached(free)) return false;
      }
      if ((task.host_waits || task.stream == Stream::host) && !free_to_begin(rank, i)) return false;
      state.issued = now_;
      return true;
    }
    if (task.stream == Stream::host && cost.work == Duration::zero()) {
      if (!reached(state.issued + real(cost.host))) return false;
      state.start = state.issued;
      state.enqueued = state.end = now_;
      return true;
    }
    if (task.stream != Stream::host && state.enqueued == never &&
        reached(state.issued + real(cost.host))) {
      state.enqueued = now_;
      return true;
    }
    if (task.stream == Stream::communication) {
      if (state.arrived || state.enqueued == never || !reached(taken_up(rank, i)) ||
          !may_arrive(rank, i) || !free_to_begin(rank, i))
        return false;
      return state.arrived = true;
    }
    if (state.start == never) {
      const int first = task.stream == Stream::host ? 1 : rank.work(i).launches;
      if (!reached(state.issued + real(cost.host / first)) || computing(rank) ||
          !at_head(rank, i) || !free_to_begin(rank, i))
        return false;
      state.start = now_;
      if (task.stream == Stream::host) state.enqueued = now_;
      state.left = real(cost.work);
      return true;
    }
    const bool launched =
        task.stream == Stream::host ||
        (state.enqueued != never && reached(state.enqueued + real(cost.last_launch)));
    if (state.left > tiny || !launched) return false;
    state.end = now_;
    return true;
  }

  /// One operation of all ranks.
  struct Collective {
    std::vector<std::size_t> tasks;  // [rank]
    Real left = 0;
  };

  bool arrived(const Collective& collective) const {
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (!ranks_[r].states[collective.tasks[r]].arrived) return false;
    return true;
  }
  bool running(const Collective& collective) const {
    return ranks_[0].states[collective.tasks[0]].running();
  }

  bool start_collective() {
    for (Collective& each : collectives_) {
      if (ranks_[0].states[each.tasks[0]].start != never || !arrived(each)) continue;
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        ranks_[r].states[each.tasks[r]].start = now_;
        each.left = std::max(each.left, real(ranks_[r].cost(each.tasks[r]).work));
      }
      return true;
    }
    return false;
  }

  bool end_collective() {
    for (const Collective& each : collectives_) {
      if (!running(each) || each.left > tiny) continue;
      for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].states[each.tasks[r]].end = now_;
      return true;
    }
    return false;
  }

  Real kernel_slowdown(const SlowRank& rank, std::size_t kernel) const {
    Real slowdown = 1;
    for (std::size_t i = 0; i < rank.states.size(); ++i) {
      if (!rank.states[i].arrived || rank.states[i].ended()) continue;
      const bool moving = rank.states[i].running();
      const WorkCost& cost = rank.cost(kernel);
      slowdown = std::max(
          slowdown, Real{compute_slowdown(rank.cost(i).beside, moving ? cost.memory_fraction : 0,
                                          moving ? cost.launch_rate : 0)});
    }
    return slowdown;
  }

  /// The part of a collective that is latency.
  Real latency_of(const Collective& collective) const {
    Real work = 0, latency = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const WorkCost& cost = ranks_[r].cost(collective.tasks[r]);
      work = std::max(work, real(cost.work));
      latency = std::max(latency, real(cost.latency));
    }
    return work == 0 ? 0 : std::min(Real{1}, latency / work);
  }

  Real collective_slowdown(const Collective& collective) const {
    Real slowdown = 1;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (std::ranges::any_of(ranks_, computing))
        slowdown =
            std::max(slowdown, Real{ranks_[r].cost(collective.tasks[r]).beside.communication});
    const Real latency = latency_of(collective);
    return slowdown * (latency + (1 - latency) * transfers_slowed());
  }

  /// How many times longer transfers take, so that together they fill the link once and no more:
  /// by halving an interval that holds it.
  Real transfers_slowed() const {
    const auto filled = [&](Real slowed) {
      Real sum = 0;
      for (const Collective& each : collectives_) {
        if (!running(each)) continue;
        const Real transfer = 1 - latency_of(each);
        sum += transfer / (latency_of(each) + transfer * slowed);
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
        maybe(state.issued + real(cost.host / rank.work(i).launches));
        if (state.enqueued != never) {
          maybe(state.enqueued + real(cost.last_launch));
          maybe(taken_up(rank, i));
        }
        if (computes(rank, i) && state.running() && state.left > tiny)
          maybe(now_ + state.left * kernel_slowdown(rank, i));
      }
    }
    for (const Collective& each : collectives_)
      if (running(each)) maybe(now_ + each.left * collective_slowdown(each));
    return next;
  }

  void advance(Real to) {
    const Real elapsed = to - now_;
    std::vector<Real> transferred;
    for (const Collective& each : collectives_)
      transferred.push_back(running(each) ? elapsed / collective_slowdown(each) : 0);
    std::vector<std::pair<State*, Real>> done;
    for (SlowRank& rank : ranks_)
      for (std::size_t i = 0; i < rank.states.size(); ++i)
        if (computes(rank, i) && rank.states[i].running())
          done.emplace_back(&rank.states[i], elapsed / kernel_slowdown(rank, i));
    for (const auto& [state, amount] : done) state->left = std::max(Real{0}, state->left - amount);
    for (std::size_t c = 0; c < collectives_.size(); ++c)
      collectives_[c].left = std::max(Real{0}, collectives_[c].left - transferred[c]);
    now_ = to;
  }

  std::vector<SlowRank> ranks_;
  std::vector<Collective> collectives_;
  Real now_ = 0;
};

inline Timeline slow_solve(std::span<const RankPlan> ranks) {
  return SlowSolver(ranks).solve();
}

}  // namespace ddpsim::fixtures
