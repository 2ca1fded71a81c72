// The engine.
//
// State per rank: where its host is, what its compute stream and its side streams run, how far it
// has come in the queue of each communicator. Per collective under way: a Flight. A piece of
// running work is an Activity: so much left, at such a slowdown, since then. When a slowdown
// changes, what was done so far is subtracted and a new completion is scheduled; the old event
// carries an older generation and is ignored.
//
// The host of an asynchronous device runs ahead: as long as it need not wait, its clock advances
// without events, past the virtual now. Only work on streams (and a host that runs kernels itself)
// takes events, one or two each.
//
// All events of an instant are taken before anything new is started, and rates are set once, last:
// two things that touch at an instant never slow each other.
//
// Worked example: a 10 ms kernel with factor 1.25 beside a 4 ms collective with factor 2, both from
// 0. The collective ends at 8; by then the kernel has done 8 / 1.25 = 6.4 ms, the other 3.6 run
// alone: it ends at 11.6.
//
// Cost: O(tasks) events through a heap of a few entries per rank.

#include "sim/engine/simulate.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "sim/engine/activity.hpp"
#include "sim/engine/details.hpp"
#include "sim/engine/event_queue.hpp"

namespace ddpsim {
namespace {

constexpr std::uint32_t none = ~std::uint32_t{0};

/// Streams whose work always runs at full speed; how it slows or halts kernels is decided where it
/// begins.
constexpr std::array side_streams{Stream::aside, Stream::to_host, Stream::to_device};

struct Event {
  enum class Kind : std::uint8_t { wake, kernel_done, collective_done, side_done };
  Kind kind = Kind::wake;
  std::uint32_t rank = 0;        // collective_done: index of the flight
  std::uint32_t generation = 0;  // side_done: index into side_streams
};

/// A rank's collectives of one communicator: it takes them up in order, some at a time.
struct Queue {
  std::uint32_t next = 0;       // candidate for its head
  std::uint32_t taken = 0;      // so many it has taken up
  std::uint32_t in_flight = 0;  // of those, not ended
};

/// A collective that a rank has arrived at.
struct Flight {
  std::uint32_t communicator = 0, serial = 0;
  std::uint32_t arrived = 0;        // ranks; 0: none is under way here
  std::vector<std::uint32_t> task;  // [rank] or none
  bool transferring = false;        // all have arrived
  bool fresh = false;               // at this instant: no completion scheduled yet
  double beside_compute = 1;        // its slowdown while any rank computes
  double latency = 0;               // the share of its work that no other flight slows
  Activity transfer;
};

struct Rank {
  const Schedule* schedule = nullptr;
  const Costs* costs = nullptr;
  std::vector<TaskTimes>* times = nullptr;
  std::vector<std::uint8_t> done;  // [task]
  std::uint32_t cursor = 0;        // the next task the host issues
  Instant host_clock{};            // when the host is free
  std::uint32_t next_kernel = 0;   // candidate for the head of the stream
  std::uint32_t kernel = none;     // the task the device (or the host itself) computes
  Activity computing;
  std::vector<Queue> queues;                                   // [communicator]
  std::uint32_t in_flight = 0;                                 // of all of them
  std::array<std::uint32_t, side_streams.size()> next_side{};  // candidates for their heads
  std::array<std::uint32_t, side_streams.size()> side{none, none, none};
  std::uint32_t progress = 0;  // counts what ended or began, so that settling knows when to stop
  bool active = false;         // counted in Engine::active_: a kernel is on its way
  bool draining = false;       // its work is done, its last launch is not
  bool fresh = false;    // what it computes began at this instant: no completion scheduled yet
  bool touched = false;  // in Engine::touched_
  std::array<Instant, 3 + side_streams.size()> wakes{};  // [Waker] the latest; spares double ones

  /// The comm hook's task that runs aside now, if any; kernels stand still meanwhile.
  std::uint32_t& aside() { return side[0]; }

  const WorkCost& cost(const Task& task) const { return costs->works[task.work]; }
};

/// Who asked to be looked at again. Side streams follow.
enum class Waker : std::uint8_t { host, kernel, collective, side };

class Engine {
 public:
  explicit Engine(std::span<const RankPlan> plans) : ranks_(plans.size()) {
    timeline_.ranks.resize(plans.size());
    std::size_t communicators = 1;
    for (const RankPlan& plan : plans) {
      at_once_ = std::max(at_once_, plan.schedule->collectives_at_once);
      for (const Work& work : plan.schedule->works)
        communicators = std::max<std::size_t>(communicators, work.communicator + 1U);
    }
    one_queue_ = communicators == 1;
    find_sides(plans);
    flights_.resize(communicators * static_cast<std::size_t>(at_once_));
    for (Flight& flight : flights_) flight.task.assign(plans.size(), none);
    for (std::size_t r = 0; r < plans.size(); ++r) {
      Rank& rank = ranks_[r];
      const Schedule& schedule = *plans[r].schedule;
      rank.queues.resize(communicators);
      rank.schedule = &schedule;
      rank.costs = plans[r].costs;
      timeline_.ranks[r].resize(schedule.tasks.size());
      rank.times = &timeline_.ranks[r];
      rank.done.assign(schedule.tasks.size(), 0);
    }
    timeline_.details = details_of(*plans.front().costs);
  }

  Timeline run() {
    touch_all();
    settle();
    while (!queue_.empty()) {
      now_ = queue_.next_instant();
      while (!queue_.empty() && queue_.next_instant() == now_) handle(queue_.pop());
      settle();
    }
    for (const Rank& rank : ranks_) {
      if (std::find(rank.done.begin(), rank.done.end(), 0) != rank.done.end())
        throw std::invalid_argument(
            "the schedules wait for each other for ever: not every rank issues the same "
            "collectives");
      for (const TaskTimes& at : *rank.times) timeline_.end = std::max(timeline_.end, at.end);
    }
    return std::move(timeline_);
  }

  std::uint64_t events() const { return events_; }

 private:
  void handle(const Event& event) {
    ++events_;
    switch (event.kind) {
      case Event::Kind::wake:
        return touch(ranks_[event.rank]);
      case Event::Kind::kernel_done:
        if (Rank& rank = ranks_[event.rank]; event.generation == rank.computing.generation)
          kernel_done(rank);
        return;
      case Event::Kind::collective_done:
        if (Flight& flight = flights_[event.rank]; event.generation == flight.transfer.generation)
          collective_done(flight);
        return;
      case Event::Kind::side_done:
        return side_done(ranks_[event.rank], event.generation);
    }
  }

  /// Starts everything that can start at `now_`, then sets the rates.
  void settle() {
    // NOLINTNEXTLINE(modernize-loop-convert): it grows meanwhile
    for (std::size_t i = 0; i < touched_.size(); ++i) {
      Rank& rank = ranks_[touched_[i]];
      std::uint32_t before;
      do {
        before = rank.progress;
        advance_host(rank);
        start_kernel(rank);
        for (std::uint32_t c = 0; c < rank.queues.size(); ++c) arrive(rank, c);
        for (const std::uint32_t s : sides_) start_side(rank, s);
      } while (rank.progress != before);
    }
    set_rates();
  }

  /// The host issues tasks until it has to wait or computes something itself.
  void advance_host(Rank& rank) {
    const auto& tasks = rank.schedule->tasks;
    while (rank.cursor < tasks.size()) {
      const Task& task = tasks[rank.cursor];
      TaskTimes& at = (*rank.times)[rank.cursor];
      if (task.host_waits || task.stream == Stream::host) {
        if (!ready(rank, task)) return;
        for (const std::uint32_t earlier : rank.schedule->waits_for(task))
          rank.host_clock = std::max(rank.host_clock, (*rank.times)[earlier].end);
      }
      const WorkCost& cost = rank.cost(task);
      if (task.stream == Stream::host && cost.work > Duration::zero()) {
        if (rank.kernel != none) return;
        const Instant begin = rank.host_clock + cost.host;
        if (begin > now_) return wake(rank, Waker::host, begin);
        at.issued = rank.host_clock;
        at.enqueued = at.start = now_;  // later than `begin` if the compute stream was busy
        rank.kernel = rank.cursor;
        compute(rank, cost.work);
        return;
      }
      at.issued = rank.host_clock;
      rank.host_clock += cost.host;
      at.enqueued = rank.host_clock;
      if (task.stream == Stream::host) {
        at.start = at.issued;
        at.end = at.enqueued;
        rank.done[rank.cursor] = 1;
      }
      ++rank.cursor;
    }
  }

  void start_kernel(Rank& rank) {
    if (rank.kernel != none) return;
    const std::uint32_t next = head(rank, rank.next_kernel, Stream::compute);
    if (next == none) return;
    const Task& task = rank.schedule->tasks[next];
    if (!ready(rank, task)) return;
    TaskTimes& at = (*rank.times)[next];
    const WorkCost& cost = rank.cost(task);
    const Instant launched = at.issued + cost.first_launch;
    if (launched > now_) return wake(rank, Waker::kernel, launched);
    at.start = now_;
    rank.kernel = next;
    rank.next_kernel = next + 1;
    if (cost.work == Duration::zero()) return kernel_done(rank);
    compute(rank, cost.work);
  }

  /// A rank reaches its next collective; the last one to do so starts it for all.
  void arrive(Rank& rank, std::uint32_t communicator) {
    Queue& queue = rank.queues[communicator];
    const auto most = static_cast<std::uint32_t>(at_once_);
    if (queue.in_flight == most) return;
    const std::uint32_t next = head(rank, queue.next, Stream::communication, communicator);
    if (next == none) return;
    const Task& task = rank.schedule->tasks[next];
    if (!ready(rank, task)) return;
    const Instant taken_up = (*rank.times)[next].enqueued + rank.costs->of(task).take_up;
    if (taken_up > now_) return wake(rank, Waker::collective, taken_up);
    if (!is_collective(task.operation)) {
      if (rank.aside() != none) return;
      queue.next = next + 1;
      return begin_side(rank, 0, next);
    }
    // Work that runs aside on the thread that communicates takes the place of a collective.
    if (rank.aside() != none) {
      const Task& aside = rank.schedule->tasks[rank.aside()];
      if (aside.stream == Stream::communication && queue_of(rank, aside) == communicator &&
          queue.in_flight + 1 == most)
        return;
    }
    queue.next = next + 1;
    ++queue.in_flight;
    ++rank.in_flight;
    ++rank.progress;
    Flight& flight = flight_of(communicator, queue.taken++);
    flight.task[index_of(rank)] = next;
    if (++flight.arrived < ranks_.size()) return;
    Duration work{}, latency{};
    flight.beside_compute = 1;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      (*ranks_[r].times)[flight.task[r]].start = now_;
      const WorkCost& theirs = ranks_[r].cost(ranks_[r].schedule->tasks[flight.task[r]]);
      work = std::max(work, theirs.work);
      latency = std::max(latency, theirs.latency);
      flight.beside_compute =
          std::max(flight.beside_compute, static_cast<double>(theirs.beside.communication));
    }
    flight.latency =
        work > Duration::zero() ? std::min(1.0, in_seconds(latency) / in_seconds(work)) : 0;
    flight.transferring = flight.fresh = true;
    ++transferring_;
    flight.transfer.begin(work, now_);
    touch_all();
  }

  /// Where the `serial`-th collective of a communicator is under way, or now is.
  Flight& flight_of(std::uint32_t communicator, std::uint32_t serial) {
    Flight* free = nullptr;
    for (Flight& each : flights_) {
      if (each.arrived == 0)
        free = &each;
      else if (each.communicator == communicator && each.serial == serial)
        return each;
    }
    free->communicator = communicator;
    free->serial = serial;
    return *free;
  }

  void start_side(Rank& rank, std::uint32_t side) {
    if (rank.side[side] != none) return;
    const std::uint32_t next = head(rank, rank.next_side[side], side_streams[side]);
    if (next == none) return;
    const Task& task = rank.schedule->tasks[next];
    if (!ready(rank, task)) return;
    const Instant launched = (*rank.times)[next].enqueued;
    if (launched > now_)
      return wake(rank, static_cast<Waker>(static_cast<std::uint32_t>(Waker::side) + side),
                  launched);
    rank.next_side[side] = next + 1;
    begin_side(rank, side, next);
  }

  void begin_side(Rank& rank, std::uint32_t side, std::uint32_t task) {
    rank.side[side] = task;
    TaskTimes& at = (*rank.times)[task];
    at.start = now_;
    ++rank.progress;
    const WorkCost& cost = rank.cost(rank.schedule->tasks[task]);
    queue_.push(std::max(now_ + cost.work, at.enqueued + cost.last_launch),
                {Event::Kind::side_done, index_of(rank), side});
    touch(rank);
  }

  void side_done(Rank& rank, std::uint32_t side) {
    (*rank.times)[rank.side[side]].end = now_;
    rank.done[rank.side[side]] = 1;
    rank.side[side] = none;
    ++rank.progress;
    touch(rank);
  }

  /// Work begins; its slowdown and its completion are set with all others, once this instant has
  /// settled.
  void compute(Rank& rank, Duration work) {
    rank.computing.begin(work, now_);
    rank.fresh = true;
    ++rank.progress;
    set_active(rank, true);
  }

  void kernel_done(Rank& rank) {
    const Task& task = rank.schedule->tasks[rank.kernel];
    TaskTimes& at = (*rank.times)[rank.kernel];
    touch(rank);
    const Duration last_launch = rank.cost(task).last_launch;
    if (task.stream == Stream::compute && now_ < at.enqueued + last_launch) {
      // The host is behind: the last of these launches has not run yet. The short kernels of the
      // run and the gaps between them are spread over all of it, so to a collective it stays
      // active.
      rank.draining = true;
      set_active(rank, true);  // a run of no length never was
      ++rank.computing.generation;
      queue_.push(at.enqueued + last_launch,
                  {Event::Kind::kernel_done, index_of(rank), rank.computing.generation});
      return;
    }
    set_active(rank, false);
    at.end = now_;
    rank.done[rank.kernel] = 1;
    if (task.stream == Stream::host) {
      rank.host_clock = now_;
      ++rank.cursor;
    }
    rank.kernel = none;
    rank.draining = false;
    ++rank.progress;
  }

  void collective_done(Flight& flight) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      Rank& rank = ranks_[r];
      (*rank.times)[flight.task[r]].end = now_;
      rank.done[flight.task[r]] = 1;
      flight.task[r] = none;
      --rank.queues[flight.communicator].in_flight;
      --rank.in_flight;
    }
    flight.arrived = 0;
    flight.transferring = false;
    --transferring_;
    touch_all();
  }

  /// Sets how collectives and kernels slow each other from now on. Only the touched ranks, to which
  /// something happened at this instant, can have changed.
  void set_rates() {
    for (const std::uint32_t r : touched_) {
      Rank& rank = ranks_[r];
      rank.touched = false;
      if (!rank.active || rank.draining) continue;
      double slowdown = 1;
      if (rank.aside() != none)
        slowdown = standstill;
      else if (rank.in_flight > 0)
        slowdown = slowdown_beside_flights(r);
      if (slowdown != rank.computing.slowdown)
        rank.computing.change(slowdown, now_);
      else if (!rank.fresh)
        continue;
      rank.fresh = false;
      if (slowdown == standstill) continue;
      queue_.push(rank.computing.end(), {Event::Kind::kernel_done, r, rank.computing.generation});
    }
    touched_.clear();
    if (transferring_ == 0) return;
    const double sharing = transferring_ > 1 ? transfers_slowed() : 1;
    for (std::uint32_t f = 0; f < flights_.size(); ++f) {
      Flight& flight = flights_[f];
      if (!flight.transferring) continue;
      double slowdown = active_ > 0 ? flight.beside_compute : 1;
      slowdown *= flight.latency + (1 - flight.latency) * sharing;
      if (slowdown != flight.transfer.slowdown)
        flight.transfer.change(slowdown, now_);
      else if (!flight.fresh)
        continue;
      flight.fresh = false;
      queue_.push(flight.transfer.end(),
                  {Event::Kind::collective_done, f, flight.transfer.generation});
    }
  }

  /// How many times longer transfers take, so that the collectives under way together fill the link
  /// and move no more: each fills it for the part of its time that is transfer, and these parts
  /// must not be more than the whole. 1: they fit as they are.
  double transfers_slowed() const {
    // The filled parts fall with s and are convex in s, so Newton's steps from below never
    // overshoot.
    constexpr int most_steps = 20;
    constexpr double close = 1e-13;
    double s = 1;
    for (int step = 0; step < most_steps; ++step) {
      double filled = 0, slope = 0;
      for (const Flight& each : flights_) {
        if (!each.transferring) continue;
        const double transfer = 1 - each.latency, time = each.latency + transfer * s;
        if (transfer <= 0) continue;
        filled += transfer / time;
        slope -= transfer * transfer / (time * time);
      }
      if (filled <= 1 + close) break;
      s += (filled - 1) / -slope;
    }
    return s;
  }

  /// How much slower this rank computes: the most that any collective it takes part in causes.
  double slowdown_beside_flights(std::uint32_t r) const {
    const Rank& rank = ranks_[r];
    const std::vector<Task>& tasks = rank.schedule->tasks;
    double slowdown = 1;
    for (const Flight& flight : flights_) {
      if (flight.task[r] == none) continue;
      const Interference& beside = rank.cost(tasks[flight.task[r]]).beside;
      const WorkCost& kernel = rank.cost(tasks[rank.kernel]);
      slowdown = std::max<double>(
          slowdown, flight.transferring
                        ? compute_slowdown(beside, kernel.memory_fraction, kernel.launch_rate)
                        : compute_slowdown(beside, 0));
    }
    return slowdown;
  }

  void set_active(Rank& rank, bool active) {
    if (rank.active == active) return;
    rank.active = active;
    active_ += active ? 1 : -1;
  }

  void touch(Rank& rank) {
    if (rank.touched) return;
    rank.touched = true;
    touched_.push_back(index_of(rank));
  }

  void touch_all() {
    for (Rank& rank : ranks_) touch(rank);
  }

  /// The next task of a stream that the host has issued, if any.
  std::uint32_t head(const Rank& rank, std::uint32_t& next, Stream stream,
                     std::uint32_t communicator = 0) const {
    const auto& tasks = rank.schedule->tasks;
    while (next < rank.cursor &&
           (tasks[next].stream != stream || (stream == Stream::communication && !one_queue_ &&
                                             queue_of(rank, tasks[next]) != communicator)))
      ++next;
    return next < rank.cursor ? next : none;
  }

  bool ready(const Rank& rank, const Task& task) const {
    for (const std::uint32_t earlier : rank.schedule->waits_for(task))
      if (!rank.done[earlier]) return false;
    return true;
  }

  /// The communicator in whose queue the task stands; 0 for every task that is not on the
  /// communication stream.
  static std::uint32_t queue_of(const Rank& rank, const Task& task) {
    return rank.schedule->works[task.work].communicator;
  }

  /// Finds the side streams that are in use: most schedules have no tasks on them.
  void find_sides(std::span<const RankPlan> plans) {
    std::array<bool, all_streams.size()> used{};
    for (const RankPlan& plan : plans)
      for (const Task& task : plan.schedule->tasks)
        used[static_cast<std::size_t>(task.stream)] = true;
    for (std::uint32_t s = 0; s < side_streams.size(); ++s)
      if (used[static_cast<std::size_t>(side_streams[s])]) sides_.push_back(s);
  }

  void wake(Rank& rank, Waker who, Instant at) {
    Instant& latest = rank.wakes[static_cast<std::size_t>(who)];
    if (latest == at) return;
    latest = at;
    queue_.push(at, {Event::Kind::wake, index_of(rank), 0});
  }

  std::uint32_t index_of(const Rank& rank) const {
    return static_cast<std::uint32_t>(&rank - ranks_.data());
  }

  Timeline timeline_;
  std::vector<Rank> ranks_;
  EventQueue<Event> queue_;
  std::uint64_t events_ = 0;
  Instant now_{};
  std::vector<std::uint32_t> touched_;  // ranks to look at before time goes on
  int active_ = 0;                      // ranks that compute
  int at_once_ = 1;                     // collectives of one communicator
  bool one_queue_ = true;               // there is one communicator
  std::vector<std::uint32_t> sides_;    // side streams that are used, as indices
  std::vector<Flight> flights_;
  int transferring_ = 0;  // of them
};

}  // namespace

Timeline simulate(std::span<const RankPlan> ranks, std::uint64_t* events) {
  if (ranks.empty()) throw std::invalid_argument("there is no rank to simulate");
  for (const RankPlan& rank : ranks) {
    const Schedule& schedule = *rank.schedule;
    if (rank.costs->works.size() != schedule.works.size())
      throw std::invalid_argument("the costs are of another schedule");
    if (schedule.rounds != 1 || schedule.background.size != Bytes{})
      throw std::invalid_argument(
          "rounds and all-reduces beside a step are measured, not simulated");
    for (std::size_t i = 0; i < schedule.tasks.size(); ++i)
      for (const std::uint32_t earlier : schedule.waits_for(schedule.tasks[i]))
        if (earlier >= i) throw std::invalid_argument("a task waits for a later one");
  }
  Engine engine(ranks);
  Timeline timeline = engine.run();
  if (events != nullptr) *events = engine.events();
  return timeline;
}

Timeline simulate(const Schedule& schedule, const Costs& costs, std::uint64_t* events) {
  const RankPlan plan{&schedule, &costs};
  return simulate(std::span(&plan, 1), events);
}

}  // namespace ddpsim
