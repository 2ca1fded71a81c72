// The engine.
//
// State per class of ranks: where its host is, what its device runs, how far it has come on each
// stream. A piece of running work is an Activity: so much left, at such a slowdown, since then.
// When a slowdown changes, what was done so far is subtracted and a new completion is scheduled;
// the old event carries an older generation and is ignored.
//
// The host of an asynchronous device runs ahead: as long as it need not wait, its clock advances
// without events, past the virtual now. Only work on streams (and a host that runs kernels itself)
// takes events, one or two each.
//
// All events of an instant are taken before anything new is started, and rates are set once, last.
//
// Worked example: a 10 ms kernel with factor 1.25 beside a 4 ms collective with factor 2, both from
// 0. The collective ends at 8; by then the kernel has done 8 / 1.25 = 6.4 ms, the other 3.6 run
// alone: it ends at 11.6.
//
// Cost: O(tasks) events through a heap of a few entries per class.

#include "sim/engine/simulate.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "sim/engine/activity.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/engine/flights.hpp"
#include "sim/engine/rank_classes.hpp"

namespace ddpsim {
namespace {

constexpr std::uint32_t none = Plan::no_task;

struct Event {
  enum class Kind : std::uint8_t { wake, kernel_done, side_done };
  Kind kind = Kind::wake;
  std::uint32_t rank = 0;
  std::uint32_t generation = 0;  // side_done: the task
};

/// How far a rank is on a stream.
struct OnStream {
  const std::uint32_t* next = nullptr;  // in Plan::of_stream
  std::uint32_t lanes = 0;              // that are taken
  Instant wake{};                       // the latest; spares double ones
};

/// How far a rank is in a channel.
struct InChannel {
  const std::uint32_t* next = nullptr;  // in Plan::of_channel
  std::uint32_t meeting = none;
  std::uint32_t taken = 0, in_flight = 0, at_once = 1;
};

struct Rank {
  const program::Program* program = nullptr;
  const Plan* plan = nullptr;
  const Costs* costs = nullptr;
  const JobCosts::Pause* pause = nullptr;  // the next one
  const JobCosts::Pause* last_pause = nullptr;
  std::uint32_t pauses_at = none;  // the task of `pause`
  std::vector<TaskTimes> times;
  std::vector<std::uint8_t> done;  // [task]
  std::vector<OnStream> streams;
  std::vector<InChannel> channels;
  std::uint32_t cursor = 0;      // the next task the host issues
  Instant host_clock{};          // when the host is free
  Instant wake{};                // the host's latest
  std::uint32_t kernel = none;   // the task the device (or the host itself) computes
  std::uint32_t halting = none;  // the task for which kernels stand still
  Activity computing;
  bool look_again = false;  // at its host and all streams
  bool active = false;      // a kernel is on its way
  bool told = false;        // what Engine::flights_ knows of `active`
  bool draining = false;    // its work is done, its last launch is not
  bool fresh = false;       // what it computes began at this instant: no completion scheduled yet
  bool touched = false;     // in Engine::touched_

  const program::Task& task(std::uint32_t index) const { return program->tasks[index]; }
  const WorkCost& cost(std::uint32_t index) const { return costs->works[task(index).work]; }

  void next_pause() { pauses_at = pause == last_pause ? none : pause->task; }
  /// The host stands still.
  void take_pause() {
    host_clock += pause->length;
    ++pause;
    next_pause();
  }
};

/// What costs tell of works besides how long they take: an entry for each.
std::vector<TaskDetail> details_of(const Costs& costs) {
  std::vector<TaskDetail> details;
  details.reserve(costs.works.size());
  for (const WorkCost& cost : costs.works)
    details.push_back(
        {cost.latency, cost.filling, cost.work, cost.last_launch, cost.choice, cost.take_up});
  return details;
}

class Engine {
 public:
  Engine(const program::Job& job, const Plans& plans, const JobCosts& costs)
      : job_(job),
        costs_(costs),
        plans_(plans),
        classes_(classes_of(job, plans.channels, costs.of_rank)),
        flights_(classes_.classes.size()) {
    for (const RankClasses::Meeting& each : classes_.meetings) flights_.add_meeting(each.members);
    ranks_.resize(classes_.classes.size());
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      Rank& rank = ranks_[r];
      rank.program = &job.programs[classes_.classes[r].program];
      rank.plan = &plans_.of_program[classes_.classes[r].program];
      rank.costs = &costs.kinds[classes_.classes[r].costs];
      if (classes_.classes[r].costs < costs.pauses.size()) {
        const std::vector<JobCosts::Pause>& pauses = costs.pauses[classes_.classes[r].costs];
        rank.pause = pauses.data();
        rank.last_pause = pauses.data() + pauses.size();
        rank.next_pause();
      }
      rank.times.resize(rank.program->tasks.size());
      rank.done.assign(rank.times.size(), 0);
      for (const auto& tasks : rank.plan->of_stream) rank.streams.push_back({tasks.data()});
      for (std::size_t c = 0; c < plans_.channels.size(); ++c) {
        const std::uint32_t* first = rank.plan->of_channel[c].data();
        rank.channels.push_back(*first == none ? InChannel{} : bound(r, plans_.channels[c], first));
      }
    }
  }

  JobTimeline run() {
    for (Rank& rank : ranks_) touch(rank);
    settle();
    while (!queue_.empty() || flights_.next() != Flights::never) {
      now_ = flights_.next();
      if (!queue_.empty()) now_ = std::min(now_, queue_.next_instant());
      flights_.advance(now_);
      take_ended();
      while (!queue_.empty() && queue_.next_instant() == now_) handle(queue_.pop());
      settle();
    }
    JobTimeline timeline;
    timeline.events = events_;
    for (const RankClasses::Class& each : classes_.classes)
      timeline.details_of.push_back(each.costs);
    for (const Costs& kind : costs_.kinds) timeline.details.push_back(details_of(kind));
    timeline.class_of = std::move(classes_.of_rank);
    for (Rank& rank : ranks_) {
      if (std::ranges::find(rank.done, 0) != rank.done.end())
        throw std::invalid_argument("the ranks of the job wait for each other for ever");
      for (const TaskTimes& at : rank.times) timeline.end = std::max(timeline.end, at.end);
      timeline.classes.push_back(std::move(rank.times));
    }
    return timeline;
  }

 private:
  /// Where a channel leads the ranks of a class.
  InChannel bound(std::uint32_t rank, const JobChannel& channel, const std::uint32_t* first) {
    const auto communicator = static_cast<std::size_t>(channel.communicator);
    InChannel in;
    in.next = first;
    in.at_once = job_.communicators.at(communicator).at_once;
    in.meeting = classes_.meeting_of[rank][communicator];
    if (in.meeting == RankClasses::none)
      throw std::invalid_argument("a rank communicates in a group that it is not in");
    if (channel.with == JobChannel::With::group) return in;
    const std::uint32_t peer =
        classes_.meetings[in.meeting].members.at(static_cast<std::size_t>(channel.peer));
    const bool sends = channel.with == JobChannel::With::to_peer;
    const auto pair = sends ? std::pair(rank, peer) : std::pair(peer, rank);
    const auto [found, added] = pairs_.try_emplace({channel.communicator, pair}, none);
    if (added) found->second = flights_.add_meeting({pair.first, pair.second});
    in.meeting = found->second;
    return in;
  }

  void handle(const Event& event) {
    ++events_;
    Rank& rank = ranks_[event.rank];
    switch (event.kind) {
      case Event::Kind::wake:
        return touch(rank);
      case Event::Kind::kernel_done:
        if (event.generation == rank.computing.generation) kernel_done(rank);
        return;
      case Event::Kind::side_done:
        return side_done(rank, event.generation);
    }
  }

  void take_ended() {
    for (const Flights::Member& member : flights_.ended) {
      Rank& rank = ranks_[member.rank];
      end(rank, member.task);
      --rank.channels[rank.plan->channel[member.task]].in_flight;
      --rank.streams[rank.task(member.task).stream].lanes;
      ++events_;
    }
    flights_.ended.clear();
  }

  /// Starts everything that can start at `now_`, then sets the rates.
  void settle() {
    for (std::size_t i = 0; i < touched_.size(); ++i) {  // it grows meanwhile
      Rank& rank = ranks_[touched_[i]];
      while (begin_in_order(rank)) {
      }
    }
    set_rates();
  }

  /// The host's goes first, then the streams' by their numbers. True as soon as something ended
  /// that took no time, or a stream may begin that was looked at before.
  bool begin_in_order(Rank& rank) {
    rank.look_again = false;
    advance_host(rank);
    for (std::uint32_t s = 1; s < rank.streams.size(); ++s)
      while (advance(rank, s))
        if (rank.look_again) return true;
    return false;
  }

  /// The host issues tasks until it has to wait or computes something itself.
  void advance_host(Rank& rank) {
    while (rank.cursor < rank.times.size()) {
      const program::Task& task = rank.task(rank.cursor);
      TaskTimes& at = rank.times[rank.cursor];
      const WorkCost& cost = rank.costs->works[task.work];
      if (task.stream == 0) {
        if (!ready(rank, rank.cursor)) return;
        for (const std::uint32_t earlier : rank.program->waits_for(rank.cursor))
          rank.host_clock = std::max(rank.host_clock, rank.times[earlier].end);
        if (cost.work > Duration::zero()) {
          if (rank.kernel != none) return;
          const bool pauses = rank.cursor == rank.pauses_at;
          const Instant begin =
              rank.host_clock + cost.host + (pauses ? rank.pause->length : Duration::zero());
          if (begin > now_) {
            wake(rank, rank.wake, begin);
            return;
          }
          at.issued = rank.host_clock;
          if (pauses) rank.take_pause();
          at.enqueued = at.start = now_;  // later than `begin` if the device was busy
          rank.kernel = rank.cursor;
          compute(rank, cost.work);
          return;
        }
      }
      at.issued = rank.host_clock;
      if (rank.cursor == rank.pauses_at) rank.take_pause();
      rank.host_clock += cost.host;
      at.enqueued = rank.host_clock;
      if (task.stream == 0) {
        at.start = at.issued;
        at.end = at.enqueued;
        rank.done[rank.cursor] = 1;
      }
      ++rank.cursor;
    }
  }

  /// The stream begins its next task, if that can begin; and says whether another may.
  bool advance(Rank& rank, std::uint32_t stream) {
    OnStream& on = rank.streams[stream];
    const std::uint32_t next = *on.next;
    if (next >= rank.cursor) return false;
    const program::Stream& its = job_.streams[stream];
    if (on.lanes == its.lanes) return false;
    const std::uint16_t channel = rank.plan->channel[next];
    if (channel == Plan::no_channel && !its.beside) return start_kernel(rank, stream, next);
    if (!ready(rank, next)) return false;
    const Instant taken_up = rank.times[next].enqueued + rank.cost(next).take_up;
    if (taken_up > now_) return wake(rank, on.wake, taken_up);
    if (channel == Plan::no_channel) {
      if (its.halts && rank.halting != none) return false;
      begin_beside(rank, next, its.halts);
    } else {
      InChannel& in = rank.channels[channel];
      if (in.in_flight == in.at_once || next != *in.next) return false;
      arrive(rank, in, next);
    }
    ++on.next;
    ++on.lanes;
    return true;
  }

  void arrive(Rank& rank, InChannel& in, std::uint32_t task) {
    ++in.next;
    ++in.in_flight;
    rank.look_again = true;  // the next of the channel may stand on another stream
    flights_.arrive(in.meeting, in.taken++, {index_of(rank), task}, rank.cost(task), now_);
    for (const Flights::Member& member : flights_.begun) {
      ranks_[member.rank].times[member.task].start = now_;
      touch(ranks_[member.rank]);
    }
    flights_.begun.clear();
  }

  bool start_kernel(Rank& rank, std::uint32_t stream, std::uint32_t next) {
    if (rank.kernel != none || !ready(rank, next)) return false;
    OnStream& on = rank.streams[stream];
    TaskTimes& at = rank.times[next];
    const WorkCost& cost = rank.cost(next);
    const Instant launched = at.enqueued - (cost.host - cost.first_launch);
    if (launched > now_) return wake(rank, on.wake, launched);
    at.start = now_;
    rank.kernel = next;
    ++on.next;
    ++on.lanes;
    if (cost.work == Duration::zero())
      kernel_done(rank);
    else
      compute(rank, cost.work);
    return on.lanes < job_.streams[stream].lanes;
  }

  void begin_beside(Rank& rank, std::uint32_t index, bool halts) {
    if (halts) rank.halting = index;
    TaskTimes& at = rank.times[index];
    at.start = now_;
    const WorkCost& cost = rank.cost(index);
    queue_.push(std::max(now_ + cost.work, at.enqueued + cost.last_launch),
                {Event::Kind::side_done, index_of(rank), index});
    touch(rank);
  }

  void side_done(Rank& rank, std::uint32_t index) {
    if (rank.halting == index) rank.halting = none;
    --rank.streams[rank.task(index).stream].lanes;
    end(rank, index);
  }

  void end(Rank& rank, std::uint32_t index) {
    rank.times[index].end = now_;
    rank.done[index] = 1;
    rank.look_again = true;
    touch(rank);
  }

  /// Work begins; its slowdown and its completion are set with all others, once this instant has
  /// settled.
  void compute(Rank& rank, Duration work) {
    rank.computing.begin(work, now_);
    rank.fresh = true;
    rank.active = true;
  }

  void kernel_done(Rank& rank) {
    const std::uint32_t index = rank.kernel;
    const Duration last_launch = rank.cost(index).last_launch;
    const bool is_hosts = rank.task(index).stream == 0;
    const Instant launched = rank.times[index].enqueued + last_launch;
    if (!is_hosts && now_ < launched) {
      // The host is behind: the last of these launches has not run yet. The short kernels of the
      // run and the gaps between them are spread over all of it, so to a collective it stays
      // active.
      touch(rank);
      rank.draining = true;
      rank.active = true;  // a run of no length never was
      ++rank.computing.generation;
      queue_.push(launched, {Event::Kind::kernel_done, index_of(rank), rank.computing.generation});
      return;
    }
    rank.active = false;
    if (is_hosts) {
      rank.host_clock = now_;
      ++rank.cursor;
    } else {
      --rank.streams[rank.task(index).stream].lanes;
    }
    rank.kernel = none;
    rank.draining = false;
    end(rank, index);
  }

  /// Sets how collectives and kernels slow each other from now on. Only the touched ranks, to which
  /// something happened at this instant, can have changed.
  void set_rates() {
    for (const std::uint32_t r : touched_) {
      Rank& rank = ranks_[r];
      rank.touched = false;
      if (rank.active != rank.told) {
        rank.told = rank.active;
        flights_.computes(r, rank.told);
      }
      if (!rank.active || rank.draining) continue;
      double slowdown = 1;
      if (rank.halting != none)
        slowdown = standstill;
      else if (flights_.stands(r))
        slowdown = flights_.felt(r, rank.cost(rank.kernel));
      if (slowdown != rank.computing.slowdown)
        rank.computing.change(slowdown, now_);
      else if (!rank.fresh)
        continue;
      rank.fresh = false;
      if (slowdown == standstill) continue;
      queue_.push(rank.computing.end(), {Event::Kind::kernel_done, r, rank.computing.generation});
    }
    touched_.clear();
    flights_.settle(now_);
  }

  void touch(Rank& rank) {
    if (rank.touched) return;
    rank.touched = true;
    touched_.push_back(index_of(rank));
  }

  static bool ready(const Rank& rank, std::uint32_t index) {
    for (const std::uint32_t earlier : rank.program->waits_for(index))
      if (!rank.done[earlier]) return false;
    return true;
  }

  /// The rank is looked at again. Nothing begins before: false.
  bool wake(const Rank& rank, Instant& latest, Instant at) {
    if (latest == at) return false;
    latest = at;
    queue_.push(at, {Event::Kind::wake, index_of(rank), 0});
    return false;
  }

  std::uint32_t index_of(const Rank& rank) const {
    return static_cast<std::uint32_t>(&rank - ranks_.data());
  }

  const program::Job& job_;
  const JobCosts& costs_;
  const Plans& plans_;
  RankClasses classes_;
  Flights flights_;
  std::vector<Rank> ranks_;
  /// Messages under way, by (communicator, (sender, receiver)).
  std::map<std::pair<std::int16_t, std::pair<std::uint32_t, std::uint32_t>>, std::uint32_t> pairs_;
  EventQueue<Event> queue_;
  std::uint64_t events_ = 0;
  Instant now_{};
  std::vector<std::uint32_t> touched_;  // ranks to look at before time goes on
};

void check_costs(const program::Job& job, const JobCosts& costs) {
  if (job.ranks() == 0) throw std::invalid_argument("there is no rank to simulate");
  if (job.beside) throw std::invalid_argument("what runs beside a job is measured, not simulated");
  const bool fits =
      costs.of_rank.size() == job.ranks() &&
      std::ranges::all_of(
          costs.kinds, [&](const Costs& each) { return each.works.size() == job.works.size(); }) &&
      std::ranges::all_of(costs.of_rank,
                          [&](std::uint16_t each) { return each < costs.kinds.size(); });
  if (!fits) throw std::invalid_argument("the costs are of another job");
}

}  // namespace

JobTimeline simulate(const program::Job& job, const JobCosts& costs) {
  check_costs(job, costs);
  return simulate(job, plans_of(job), costs);
}

JobTimeline simulate(const program::Job& job, const Plans& plans, const JobCosts& costs) {
  check_costs(job, costs);
  return Engine(job, plans, costs).run();
}

}  // namespace ddpsim
