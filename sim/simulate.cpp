// The engine.
//
// State per rank: where its host is, what its compute and communication streams run. A piece of
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

#include "sim/simulate.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "sim/activity.hpp"
#include "sim/event_queue.hpp"

namespace ddpsim {
namespace {

constexpr std::uint32_t none = ~std::uint32_t{0};

struct Event {
  enum class Kind : std::uint8_t { wake, kernel_done, collective_done, aside_done };
  Kind kind = Kind::wake;
  std::uint32_t rank = 0;
  std::uint32_t generation = 0;
};

struct Rank {
  const Schedule* schedule = nullptr;
  std::vector<TaskTimes>* times = nullptr;
  std::vector<std::uint8_t> done;  // [task]
  std::uint32_t cursor = 0;        // the next task the host issues
  Instant host_clock{};            // when the host is free
  std::uint32_t next_kernel = 0;   // candidates for the heads of the streams
  std::uint32_t next_collective = 0;
  std::uint32_t kernel = none;      // the task the device (or the host itself) computes
  std::uint32_t collective = none;  // the task that has arrived at its communicator
  Activity computing;
  std::uint32_t next_aside = 0;  // candidate for the head of the stream aside
  std::uint32_t aside = none;    // a comm hook's task; meanwhile kernels stand still
  std::uint32_t progress = 0;    // counts what ended or began, so that settling knows when to stop
  bool active = false;           // counted in Engine::active_: a kernel is on its way
  bool draining = false;         // its work is done, its last launch is not
  bool fresh = false;    // what it computes began at this instant: no completion scheduled yet
  bool touched = false;  // in Engine::touched_
  std::array<Instant, 4> wakes{};  // [Waker] the latest wake scheduled; spares double ones
};

/// Who asked to be looked at again.
enum class Waker : std::uint8_t { host, kernel, collective, aside };

class Engine {
 public:
  explicit Engine(std::span<const Schedule> schedules) : ranks_(schedules.size()) {
    timeline_.ranks.resize(schedules.size());
    for (std::size_t r = 0; r < schedules.size(); ++r) {
      ranks_[r].schedule = &schedules[r];
      timeline_.ranks[r].resize(schedules[r].tasks.size());
      ranks_[r].times = &timeline_.ranks[r];
      ranks_[r].done.assign(schedules[r].tasks.size(), 0);
    }
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
    Rank& rank = ranks_[event.rank];
    switch (event.kind) {
      case Event::Kind::wake:
        return touch(rank);
      case Event::Kind::kernel_done:
        if (event.generation == rank.computing.generation) kernel_done(rank);
        return;
      case Event::Kind::collective_done:
        if (event.generation == transfer_.generation) collective_done();
        return;
      case Event::Kind::aside_done:
        return aside_done(rank);
    }
  }

  /// Starts everything that can start at `now_`, then sets the rates.
  void settle() {
    for (std::size_t i = 0; i < touched_.size(); ++i) {  // it grows meanwhile
      Rank& rank = ranks_[touched_[i]];
      std::uint32_t before;
      do {
        before = rank.progress;
        advance_host(rank);
        start_kernel(rank);
        arrive(rank);
        start_aside(rank);
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
      if (task.stream == Stream::host && task.work > Duration::zero()) {
        if (rank.kernel != none) return;
        const Instant begin = rank.host_clock + task.host;
        if (begin > now_) return wake(rank, Waker::host, begin);
        at.issued = rank.host_clock;
        at.enqueued = at.start = now_;  // later than `begin` if the compute stream was busy
        rank.kernel = rank.cursor;
        compute(rank, task.work);
        return;
      }
      at.issued = rank.host_clock;
      rank.host_clock += task.host;
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
    const Instant launched = first_launch(task, at);
    if (launched > now_) return wake(rank, Waker::kernel, launched);
    at.start = now_;
    rank.kernel = next;
    rank.next_kernel = next + 1;
    if (task.work == Duration::zero()) return kernel_done(rank);
    compute(rank, task.work);
  }

  /// A rank reaches its next collective; the last one to do so starts it for all.
  void arrive(Rank& rank) {
    if (rank.collective != none) return;
    const std::uint32_t next = head(rank, rank.next_collective, Stream::communication);
    if (next == none) return;
    const Task& task = rank.schedule->tasks[next];
    if (!ready(rank, task)) return;
    const Instant taken_up = (*rank.times)[next].enqueued + task.handover;
    if (taken_up > now_) return wake(rank, Waker::collective, taken_up);
    if (!is_collective(task.operation)) {
      if (rank.aside != none) return;
      rank.next_collective = next + 1;
      return begin_aside(rank, next);
    }
    if (rank.aside != none && rank.schedule->tasks[rank.aside].stream == Stream::communication)
      return;
    rank.collective = next;
    rank.next_collective = next + 1;
    ++rank.progress;
    if (++arrived_ < ranks_.size()) return;
    Duration work{};
    beside_compute_ = 1;
    for (Rank& each : ranks_) {
      (*each.times)[each.collective].start = now_;
      const Task& theirs = each.schedule->tasks[each.collective];
      work = std::max(work, theirs.work);
      beside_compute_ = std::max(beside_compute_, static_cast<double>(theirs.beside.communication));
    }
    transferring_ = true;
    transfer_.begin(work, now_);
    fresh_transfer_ = true;
    touch_all();
  }

  void start_aside(Rank& rank) {
    if (rank.aside != none) return;
    const std::uint32_t next = head(rank, rank.next_aside, Stream::aside);
    if (next == none) return;
    const Task& task = rank.schedule->tasks[next];
    if (!ready(rank, task)) return;
    const Instant launched = (*rank.times)[next].enqueued;
    if (launched > now_) return wake(rank, Waker::aside, launched);
    rank.next_aside = next + 1;
    begin_aside(rank, next);
  }

  /// It runs at full speed.
  void begin_aside(Rank& rank, std::uint32_t task) {
    rank.aside = task;
    TaskTimes& at = (*rank.times)[task];
    at.start = now_;
    ++rank.progress;
    queue_.push(std::max(now_ + rank.schedule->tasks[task].work,
                         at.enqueued + rank.schedule->tasks[task].last_launch),
                {Event::Kind::aside_done, index_of(rank), 0});
    touch(rank);
  }

  void aside_done(Rank& rank) {
    (*rank.times)[rank.aside].end = now_;
    rank.done[rank.aside] = 1;
    rank.aside = none;
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
    if (task.stream == Stream::compute && now_ < at.enqueued + task.last_launch) {
      // The host is behind: the last of these launches has not run yet. The short kernels of the
      // run and the gaps between them are spread over all of it, so to a collective it stays
      // active.
      rank.draining = true;
      set_active(rank, true);  // a run of no length never was
      ++rank.computing.generation;
      queue_.push(at.enqueued + task.last_launch,
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

  void collective_done() {
    transferring_ = false;
    arrived_ = 0;
    for (Rank& rank : ranks_) {
      (*rank.times)[rank.collective].end = now_;
      rank.done[rank.collective] = 1;
      rank.collective = none;
    }
    touch_all();
  }

  /// Who slows whom, from now on. Only ranks that something happened to can have changed.
  void set_rates() {
    for (const std::uint32_t r : touched_) {
      Rank& rank = ranks_[r];
      rank.touched = false;
      if (!rank.active || rank.draining) continue;
      double slowdown = 1;
      if (rank.aside != none) {
        slowdown = standstill;
      } else if (rank.collective != none) {
        const float memory = transferring_ ? rank.schedule->tasks[rank.kernel].memory_fraction : 0;
        slowdown = compute_slowdown(rank.schedule->tasks[rank.collective].beside, memory);
      }
      if (slowdown != rank.computing.slowdown)
        rank.computing.change(slowdown, now_);
      else if (!rank.fresh)
        continue;
      rank.fresh = false;
      if (slowdown == standstill) continue;
      queue_.push(rank.computing.end(), {Event::Kind::kernel_done, r, rank.computing.generation});
    }
    touched_.clear();
    if (!transferring_) return;
    const double slowdown = active_ > 0 ? beside_compute_ : 1;
    if (slowdown != transfer_.slowdown)
      transfer_.change(slowdown, now_);
    else if (!fresh_transfer_)
      return;
    fresh_transfer_ = false;
    queue_.push(transfer_.end(), {Event::Kind::collective_done, 0, transfer_.generation});
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
  std::uint32_t head(const Rank& rank, std::uint32_t& next, Stream stream) const {
    const auto& tasks = rank.schedule->tasks;
    while (next < rank.cursor && tasks[next].stream != stream) ++next;
    return next < rank.cursor ? next : none;
  }

  bool ready(const Rank& rank, const Task& task) const {
    for (const std::uint32_t earlier : rank.schedule->waits_for(task))
      if (!rank.done[earlier]) return false;
    return true;
  }

  static Instant first_launch(const Task& task, const TaskTimes& at) {
    return task.launches == 1 ? at.enqueued : at.issued + task.host / task.launches;
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
  std::size_t arrived_ = 0;             // ranks at the current collective
  int active_ = 0;                      // ranks that compute
  bool transferring_ = false;           // all ranks have arrived
  bool fresh_transfer_ = false;         // at this instant: no completion scheduled yet
  double beside_compute_ = 1;           // the collective's slowdown while any rank computes
  Activity transfer_;
};

}  // namespace

Timeline simulate(std::span<const Schedule> ranks, std::uint64_t* events) {
  if (ranks.empty()) throw std::invalid_argument("there is no rank to simulate");
  for (const Schedule& schedule : ranks)
    for (std::size_t i = 0; i < schedule.tasks.size(); ++i)
      for (const std::uint32_t earlier : schedule.waits_for(schedule.tasks[i]))
        if (earlier >= i) throw std::invalid_argument("a task waits for a later one");
  Engine engine(ranks);
  Timeline timeline = engine.run();
  if (events != nullptr) *events = engine.events();
  return timeline;
}

Timeline simulate(const Schedule& schedule, std::uint64_t* events) {
  return simulate(std::span(&schedule, 1), events);
}

}  // namespace ddpsim
