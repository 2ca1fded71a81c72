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
#include <span>
#include <stdexcept>
#include <vector>

#include "model/schedule.hpp"
#include "model/timeline.hpp"

namespace ddpsim::fixtures {

class SlowSolver {
 public:
  explicit SlowSolver(std::span<const Schedule> schedules) {
    for (const Schedule& schedule : schedules)
      ranks_.push_back({&schedule, std::vector<State>(schedule.tasks.size())});
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
    std::vector<State> states;
    const Task& task(std::size_t i) const { return schedule->tasks[i]; }
  };

  static Real real(Duration time) { return static_cast<Real>(time.count()); }
  static Instant instant(Real at) { return Instant{Duration{std::llround(at)}}; }
  bool reached(Real at) const { return at <= now_ + tiny; }

  bool free_to_begin(const SlowRank& rank, std::size_t i) const {
    return std::ranges::all_of(rank.schedule->waits_for(rank.task(i)), [&](std::uint32_t earlier) {
      return rank.states[earlier].ended() && reached(rank.states[earlier].end);
    });
  }

  /// Has every earlier task of the stream of task `i` ended?
  static bool at_head(const SlowRank& rank, std::size_t i) {
    for (std::size_t k = 0; k < i; ++k)
      if (rank.task(k).stream == rank.task(i).stream && !rank.states[k].ended()) return false;
    return true;
  }

  static bool computes(const Task& task) {
    return task.stream == Stream::compute ||
           (task.stream == Stream::host && task.work > Duration::zero());
  }
  static bool computing(const SlowRank& rank) {
    for (std::size_t i = 0; i < rank.states.size(); ++i)
      if (computes(rank.task(i)) && rank.states[i].running()) return true;
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
    if (task.stream == Stream::host && task.work == Duration::zero()) {
      if (!reached(state.issued + real(task.host))) return false;
      state.start = state.issued;
      state.enqueued = state.end = now_;
      return true;
    }
    if (task.stream != Stream::host && state.enqueued == never &&
        reached(state.issued + real(task.host))) {
      state.enqueued = now_;
      return true;
    }
    if (task.stream == Stream::communication) {
      if (state.arrived || state.enqueued == never || !at_head(rank, i) || !free_to_begin(rank, i))
        return false;
      return state.arrived = true;
    }
    if (state.start == never) {
      const int first = task.stream == Stream::host ? 1 : task.launches;
      if (!reached(state.issued + real(task.host / first)) || computing(rank) ||
          !at_head(rank, i) || !free_to_begin(rank, i))
        return false;
      state.start = now_;
      if (task.stream == Stream::host) state.enqueued = now_;
      state.left = real(task.work);
      return true;
    }
    const bool launched =
        task.stream == Stream::host ||
        (state.enqueued != never && reached(state.enqueued + real(task.last_launch)));
    if (state.left > tiny || !launched) return false;
    state.end = now_;
    return true;
  }

  /// The collective each rank stands at, or nothing while one is still on its way.
  std::vector<std::size_t> current_collectives() const {
    std::vector<std::size_t> current;
    for (const SlowRank& rank : ranks_)
      for (std::size_t i = 0; i < rank.states.size(); ++i)
        if (rank.states[i].arrived && !rank.states[i].ended()) current.push_back(i);
    if (current.size() != ranks_.size()) current.clear();
    return current;
  }

  bool start_collective() {
    const auto current = current_collectives();
    if (current.empty() || ranks_[0].states[current[0]].running()) return false;
    collective_left_ = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r].states[current[r]].start = now_;
      collective_left_ = std::max(collective_left_, real(ranks_[r].task(current[r]).work));
    }
    return true;
  }

  bool end_collective() {
    const auto current = current_collectives();
    if (current.empty() || collective_left_ > tiny) return false;
    for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r].states[current[r]].end = now_;
    return true;
  }

  Real kernel_slowdown(const SlowRank& rank, std::size_t kernel) const {
    for (std::size_t i = 0; i < rank.states.size(); ++i) {
      if (!rank.states[i].arrived || rank.states[i].ended()) continue;
      const bool moving = rank.states[i].running();
      return compute_slowdown(rank.task(i).beside, moving ? rank.task(kernel).memory_fraction : 0);
    }
    return 1;
  }

  Real collective_slowdown() const {
    const auto current = current_collectives();
    Real slowdown = 1;
    if (std::ranges::any_of(ranks_, computing))
      for (std::size_t r = 0; r < current.size(); ++r)
        slowdown = std::max(slowdown, Real{ranks_[r].task(current[r]).beside.communication});
    return slowdown;
  }

  Real next_moment() const {
    Real next = never;
    const auto maybe = [&](Real at) {
      if (!reached(at)) next = std::min(next, at);
    };
    for (const SlowRank& rank : ranks_) {
      for (std::size_t i = 0; i < rank.states.size(); ++i) {
        const State& state = rank.states[i];
        const Task& task = rank.task(i);
        if (state.ended() || state.issued == never) continue;
        maybe(state.issued + real(task.host));
        maybe(state.issued + real(task.host / task.launches));
        if (state.enqueued != never) maybe(state.enqueued + real(task.last_launch));
        if (computes(task) && state.running() && state.left > tiny)
          maybe(now_ + state.left * kernel_slowdown(rank, i));
      }
    }
    if (!current_collectives().empty()) maybe(now_ + collective_left_ * collective_slowdown());
    return next;
  }

  void advance(Real to) {
    const Real elapsed = to - now_;
    const Real collective_done = elapsed / collective_slowdown();
    std::vector<std::pair<State*, Real>> done;
    for (SlowRank& rank : ranks_)
      for (std::size_t i = 0; i < rank.states.size(); ++i)
        if (computes(rank.task(i)) && rank.states[i].running())
          done.emplace_back(&rank.states[i], elapsed / kernel_slowdown(rank, i));
    for (const auto& [state, amount] : done) state->left = std::max(Real{0}, state->left - amount);
    if (!current_collectives().empty())
      collective_left_ = std::max(Real{0}, collective_left_ - collective_done);
    now_ = to;
  }

  std::vector<SlowRank> ranks_;
  Real now_ = 0;
  Real collective_left_ = 0;
};

inline Timeline slow_solve(std::span<const Schedule> ranks) {
  return SlowSolver(ranks).solve();
}

}  // namespace ddpsim::fixtures
