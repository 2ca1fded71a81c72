// A step without an event queue.
//
// The program of a step in buckets is the same under all bucketings that are contiguous in arrival
// order, but for where all-reduces are launched and waited for. Its policy marks where that can be
// (bucket_marks.hpp). So the program is written once as a list of items, with a place for a launch
// behind every gradient that is put in its bucket, and a place for a wait before every gradient
// that is taken out of it; of those a bucketing uses some. With two streams and one collective at a
// time, what happens next is one of three or four instants: no queue is needed.
//
// The host of an asynchronous device waits for nothing, so when it launches an item is known in
// advance but for the launches of buckets before it: `Lane::shift`.
//
// Most of the time nothing happens but one kernel after another, alone or all beside the same
// collective: `race` runs those in a loop of its own.
//
// Every instant comes out as in simulate.cpp: the same Activity at the same changes of rate.

#include "sim/tune/bucket_steps.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

#include "sim/engine/price.hpp"
#include "sim/predict/predict.hpp"

namespace ddpsim {
namespace {

constexpr Instant never = Instant::max();
constexpr std::size_t most_priced = 1 << 19;  // 40 MB

}  // namespace

BucketSteps::BucketSteps(StepModel model, Training training, double link_factor)
    : model_(std::move(model)),
      training_(std::move(training)),
      whole_(build_one_bucket(model_.works, training_)),
      why_simulated_(whole_.marks.why_more()) {
  training_ = training_.in_buckets();
  training_.bucket_caps.clear();
  training_.parameter_groups = 0;
  if (!why_simulated_ && model_.costs.least_step > Duration::zero())
    why_simulated_ = "training.input may take longer than a step";
  take_costs(link_factor);
}

BucketSteps::BucketSteps(const BucketSteps& other, const CostModel& costs, double link_factor)
    : model_(other.model_),
      training_(other.training_),
      whole_(other.whole_),
      why_simulated_(other.why_simulated_) {
  model_.costs = costs;
  take_costs(link_factor);
}

void BucketSteps::take_costs(double link_factor) {
  const StepWorks& works = model_.works;
  LinkChange& change = model_.costs.collective.change;
  for (double* factor : {&change.latency, &change.filling, &change.transfer})
    *factor *= link_factor;
  before_.emplace_back();
  for (const int index : works.arrival)
    before_.push_back(before_.back() + works.gradients[at(index)].size);
  prices_.resize(1024);
  bucket_at_.assign(works.arrival.size(), nobody);
  synchronous_ = works.device.synchronous;
  if (why_simulated_) return;
  const JobCosts costs = ddpsim::price(model_.costs, whole_.job);
  check_length(total_seconds(whole_.job, costs, 0));
  const std::vector<SimulatedRank> ranks = simulated_ranks(model_.costs, whole_.job);
  const std::vector<std::size_t> of_job = job_ranks(ranks, model_.costs, whole_.job.ranks());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].compute == 1 && !ranks[i].exception && slowest_rank_decides(model_.costs))
      continue;
    if (ranks[i].exception) check_length(total_seconds(whole_.job, costs, of_job[i]));
    const std::uint16_t kind = costs.of_rank[of_job[i]];
    // A kernel stands at the same share of the computation, whatever the buckets.
    compile(costs.kinds[kind], kind < costs.pauses.size() ? std::span(costs.pauses[kind])
                                                          : std::span<const JobCosts::Pause>{});
  }
  std::stable_sort(lanes_.begin(), lanes_.end(), [this](const Lane& one, const Lane& other) {
    return alone(one).end < alone(other).end;
  });
  if (lanes_.size() == 1 && !synchronous_) find_jumps(lanes_.front());
}

void BucketSteps::take_links(const CostModel& costs) {
  model_.costs = costs;
  std::fill(prices_.begin(), prices_.end(), Price{});
  priced_ = 0;
  if (why_simulated_ || fixed_.empty()) return;
  const Costs all = costs.price(whole_.job.works, whole_.job.passes);
  for (std::size_t i = 0; i < fixed_.size(); ++i) {
    const WorkCost& cost = all.of(whole_.job.programs.front().tasks[fixed_tasks_[i]]);
    fixed_[i] = {cost.work, cost.beside};
  }
}

/// A program on its way into a lane.
struct BucketSteps::Writing {
  Lane& lane;
  std::vector<std::int32_t> position_of;  ///< [gradient] its place in the order they arrive
  bool takes_back = false;                ///< gradients come out of the buckets
  Duration host{};                        ///< what the host has spent so far
  std::int32_t fired = 0;                 ///< hooks of this round

  void add(Item::Kind kind, std::int32_t place, Duration own_host = {}) {
    Item item;
    item.kind = kind;
    item.position = place;
    item.first = host;
    item.host = own_host;
    lane.items.push_back(item);
  }
};

void BucketSteps::compile(const Costs& costs, std::span<const JobCosts::Pause> pauses) {
  const std::vector<int>& arrival = model_.works.arrival;
  const program::Program& program = whole_.job.programs.front();
  const std::span<const BucketMark> marks = whole_.marks.all();
  Writing writing{lanes_.emplace_back(), std::vector<std::int32_t>(arrival.size())};
  for (std::size_t i = 0; i < arrival.size(); ++i)
    writing.position_of[at(arrival[i])] = static_cast<std::int32_t>(i);
  writing.takes_back = std::ranges::any_of(
      marks, [](const BucketMark& mark) { return mark.kind == BucketMark::Kind::taken; });
  fixed_.clear();
  fixed_tasks_.clear();
  fired_.assign(arrival.size(), 0);
  auto mark = marks.begin();
  for (std::uint32_t t = 0; t < program.tasks.size(); ++t) {
    const program::Task& task = program.tasks[t];
    WorkCost cost = costs.of(task);
    for (const JobCosts::Pause& pause : pauses) {
      if (pause.task != t) continue;
      cost.host += pause.length;
      cost.first_launch += pause.length;
    }
    if (mark != marks.end() && mark->deed == task.deed)
      write_marked(writing, *mark++, task, cost);
    else
      write_other(writing, t, cost);
  }
  for (std::size_t i = 1; i < fired_.size(); ++i) fired_[i] = std::max(fired_[i], fired_[i - 1]);
  finish(writing.lane);
}

void BucketSteps::write_marked(Writing& writing, const BucketMark& mark, const program::Task& task,
                               const WorkCost& cost) {
  switch (mark.kind) {
    case BucketMark::Kind::filled:
      write_work(writing, task, cost);
      fired_[at(writing.position_of[at(mark.parameter)])] = ++writing.fired;
      writing.add(Item::Kind::launch, writing.fired);
      break;
    case BucketMark::Kind::launched:  // stands for all buckets
      launch_host_ = cost.host;
      handover_ = cost.take_up;
      break;
    case BucketMark::Kind::awaited:
      writing.fired = 0;
      wait_host_ = cost.host;
      if (writing.takes_back) break;
      for (std::size_t i = 0; i < writing.position_of.size(); ++i)
        writing.add(Item::Kind::wait, static_cast<std::int32_t>(i));
      break;
    case BucketMark::Kind::taken:
      writing.add(Item::Kind::wait, writing.position_of[at(mark.parameter)]);
      write_work(writing, task, cost);
      break;
  }
}

/// A task that is the same under all buckets. What waits for a task, and is no collective, waits
/// for a collective.
void BucketSteps::write_other(Writing& writing, std::uint32_t t, const WorkCost& cost) {
  const program::Program& program = whole_.job.programs.front();
  const program::Task& task = program.tasks[t];
  if (is_collective(whole_.job.works[task.work].operation)) {
    writing.host += cost.host;
    writing.add(Item::Kind::fixed_launch, static_cast<std::int32_t>(fixed_.size()), cost.host);
    fixed_.push_back({cost.work, cost.beside});
    fixed_tasks_.push_back(t);
  } else if (const auto after = program.waits_for(t); !after.empty()) {
    const auto awaited = std::ranges::find(fixed_tasks_, after.front());
    writing.add(Item::Kind::fixed_wait, static_cast<std::int32_t>(fixed_tasks_.end() - awaited) - 1,
                cost.host);
  } else {
    write_work(writing, task, cost);
  }
}

void BucketSteps::write_work(Writing& writing, const program::Task& task, const WorkCost& cost) {
  const Duration issued = writing.host;
  writing.host += cost.host;
  if (task.stream == 0 && cost.work == Duration::zero()) {
    if (synchronous_ && cost.host > Duration::zero()) writing.add(Item::Kind::host, 0, cost.host);
    return;
  }
  Item item;
  item.memory_fraction = cost.memory_fraction;
  item.launch_rate = cost.launch_rate;
  item.host = cost.host;
  item.first = issued + cost.first_launch;
  item.work = cost.work;
  item.drained = writing.host + cost.last_launch;
  writing.lane.items.push_back(item);
}

void BucketSteps::finish(Lane& lane) {
  const std::size_t gradients = model_.works.arrival.size();
  lane.left.resize(lane.items.size() + 1);
  for (std::size_t i = lane.items.size(); i-- > 0;)
    lane.left[i] = lane.left[i + 1] + lane.items[i].work;
  find_starts(lane);
  const auto rounds = static_cast<std::size_t>(training_.micro_batches);
  const std::size_t most = rounds * gradients + fixed_.size();
  lane.taken_up.resize(most);
  issued_.resize(most);
  buckets_.reserve(gradients);
  launch_after_.reserve(gradients);
}

/// When each item begins if nothing runs beside the items but the broadcasts that they wait for.
BucketSteps::Alone BucketSteps::alone(const Lane& lane) const {
  Alone alone;
  alone.at.resize(model_.works.arrival.size() + 1);
  alone.host.resize(alone.at.size());
  alone.item.resize(alone.at.size());
  Instant now{};
  std::vector<Instant> broadcasts;  // their ends, in issue order
  bool waited = false;
  for (std::size_t i = 0; i < lane.items.size(); ++i) {
    const Item& item = lane.items[i];
    switch (item.kind) {
      case Item::Kind::kernel:
        now = synchronous_ ? now + item.host + item.work
                           : std::max(std::max(now, Instant{} + item.first) + item.work,
                                      Instant{} + item.drained);
        break;
      case Item::Kind::host:
        now += item.host;
        break;
      case Item::Kind::launch:
        waited = false;
        alone.at[at(item.position)] = now;
        alone.host[at(item.position)] = item.first;
        alone.item[at(item.position)] = i;
        break;
      case Item::Kind::wait:  // of one bucket at least
        if (synchronous_ && !waited) now += wait_host_;
        if (!synchronous_ && !waited) now = std::max(now, Instant{} + item.first);
        waited = true;
        break;
      case Item::Kind::fixed_launch:
        if (synchronous_) now += item.host;
        broadcasts.push_back(std::max({now, synchronous_ ? now : Instant{} + item.first,
                                       broadcasts.empty() ? Instant{} : broadcasts.back()}) +
                             fixed_[at(item.position)].work);
        break;
      case Item::Kind::fixed_wait:
        now = std::max(now, broadcasts[broadcasts.size() - 1 - at(item.position)]) +
              (synchronous_ ? item.host : Duration{});
        break;
    }
  }
  alone.end = now;
  return alone;
}

PartitionProblem BucketSteps::ideal() {
  const Lane& lane = lanes_.back();  // the slowest
  const Alone none = alone(lane);
  const std::size_t gradients = model_.works.arrival.size();
  PartitionProblem problem;
  problem.without = none.end - Instant{};
  problem.after.resize(gradients);
  const Duration launch = launch_host_;
  for (std::size_t i = 0; i < gradients; ++i) {
    problem.sizes.push_back(before_[i + 1] - before_[i]);
    const std::size_t fired = at(fired_[i]);
    const Instant issued =
        synchronous_ ? none.at[fired] + launch : Instant{} + none.host[fired] + launch;
    problem.ready.push_back(std::max(none.at[fired], issued + handover_));
  }
  Duration left = synchronous_ ? wait_host_ : Duration{};
  for (std::size_t i = lane.items.size(); i-- > 0;) {
    const Item& item = lane.items[i];
    if (item.kind == Item::Kind::launch) break;  // before the last round's waits
    left += item.work + (synchronous_ ? item.host : Duration{});
    if (item.kind == Item::Kind::wait) problem.after[at(item.position)] = left;
  }
  problem.cost = [this](Bytes size) { return price(size).work; };
  return problem;
}

BucketSteps::Backward BucketSteps::backward() const {
  const Lane& lane = lanes_.back();
  const Alone none = alone(lane);
  const std::size_t gradients = model_.works.arrival.size();
  std::size_t end = none.item[gradients];  // the first wait
  while (end < lane.items.size() && lane.items[end].kind != Item::Kind::wait) ++end;
  Backward backward;
  backward.launch_rate = std::numeric_limits<float>::max();
  for (std::size_t i = none.item[at(fired_.front())]; i < end; ++i) {
    const Item& item = lane.items[i];
    if (item.work == Duration::zero()) continue;
    backward.memory_fraction = std::min(backward.memory_fraction, item.memory_fraction);
    backward.launch_rate = std::min(backward.launch_rate, item.launch_rate);
    ++backward.kernels;
  }
  if (backward.kernels == 0) backward.launch_rate = 0;
  for (std::size_t i = 0; i < gradients; ++i) {
    const std::size_t fired = at(fired_[i]);
    const Duration left = lane.left[none.item[fired]] - lane.left[end];
    backward.at.push_back(none.at[fired]);
    backward.left.push_back(left);
  }
  return backward;
}

/// Until the first bucket is launched all bucketings are one: when its hooks have fired is known
/// beforehand, if no broadcast comes between.
void BucketSteps::find_starts(Lane& lane) const {
  if (!fixed_.empty()) return;
  lane.starts.resize(model_.works.arrival.size() + 1);
  Instant now{};
  for (std::size_t i = 0; i < lane.items.size(); ++i) {
    const Item& item = lane.items[i];
    if (item.kind == Item::Kind::launch) {
      lane.starts[at(item.position)] = {i, now};
      if (at(item.position) == model_.works.arrival.size()) return;  // the round is over
    } else if (synchronous_) {
      now += item.host + item.work;
    } else if (item.kind == Item::Kind::kernel) {
      now = std::max(std::max(now, Instant{} + item.first) + item.work, Instant{} + item.drained);
    }
  }
}

/// Kernels of an asynchronous device that run alone, back to back, from `now` on: each starts at
/// once or when the host has launched it, and ends when its work is done or its last launch is in.
/// So all of them end at max(now + all work, over them: launched + work from it on, drained + work
/// behind it), and none of them needs a look.
void BucketSteps::find_jumps(Lane& lane) const {
  lane.launches = alone(lane).item;
  lane.last_round = lane.launches[at(fired_.front())];
  const auto is_free = [](const Item& item) {
    return item.kind == Item::Kind::kernel || item.kind == Item::Kind::launch;
  };
  while (lane.last_round > 0 && is_free(lane.items[lane.last_round - 1])) --lane.last_round;
  std::vector<Duration> bounds;  // counted from the end of all work
  for (std::size_t i = lane.last_round; i < lane.launches[at(fired_.back())]; ++i) {
    const Item& item = lane.items[i];
    bounds.push_back(item.kind == Item::Kind::kernel
                         ? std::max(item.first + lane.left[i], item.drained + lane.left[i + 1])
                         : Duration::min());
  }
  for (std::size_t span = 1; span <= bounds.size(); span *= 2) {
    lane.held_up.push_back(bounds);
    for (std::size_t i = 0; i + span < bounds.size(); ++i)
      bounds[i] = std::max(bounds[i], bounds[i + span]);
  }
}

/// When computation, alone since `now`, reaches `item`, with no bucket and no wait before it. The
/// next item is a kernel.
Instant BucketSteps::alone_until(const Lane& lane, std::size_t item, Instant now) {
  const std::size_t begin = lane.next - lane.last_round, end = item - lane.last_round;
  const auto level = static_cast<std::size_t>(std::bit_width(end - begin)) - 1;
  const std::vector<Duration>& held_up = lane.held_up[level];
  const Duration latest = std::max(held_up[begin], held_up[end - (std::size_t{1} << level)]);
  return std::max(now + lane.left[lane.next], Instant{} + latest + lane.shift) - lane.left[item];
}

const BucketSteps::AllReduce& BucketSteps::price(Bytes size) {
  const auto slot_of = [&](std::int64_t bytes) {
    const auto hash = static_cast<std::uint64_t>(bytes) * 0x9E3779B97F4A7C15u;
    return static_cast<std::size_t>(hash >> 32) & (prices_.size() - 1);
  };
  const auto place = [&](std::int64_t bytes) {
    std::size_t slot = slot_of(bytes);
    while (prices_[slot].bytes != bytes && prices_[slot].bytes >= 0)
      slot = (slot + 1) & (prices_.size() - 1);
    return slot;
  };
  std::size_t slot = place(size.count);
  if (prices_[slot].bytes == size.count) return prices_[slot].collective;
  const CollectiveCost cost = model_.costs.all_reduce(size);
  const AllReduce reduction{cost.time(), model_.costs.interference.beside(cost, size)};
  if (priced_ == most_priced) return unkept_ = reduction;
  if (2 * ++priced_ > prices_.size()) {
    std::vector<Price> smaller(2 * prices_.size());
    smaller.swap(prices_);
    for (const Price& known : smaller)
      if (known.bytes >= 0) prices_[place(known.bytes)] = known;
    slot = place(size.count);
  }
  prices_[slot] = {size.count, reduction};
  return prices_[slot].collective;
}

Duration BucketSteps::of(const std::vector<std::vector<int>>& buckets) {
  contiguous_.clear();
  const std::size_t gradients = model_.works.arrival.size();
  std::size_t position = 0;
  bool contiguous = true;
  for (const auto& bucket : buckets) {
    for (const int index : bucket)
      contiguous = contiguous && position < gradients && model_.works.arrival[position++] == index;
    contiguous_.push_back(static_cast<int>(position));
  }
  if (contiguous && position == gradients && !why_simulated_) return of(contiguous_);
  return simulated(buckets);
}

Duration BucketSteps::simulated(const std::vector<std::vector<int>>& buckets) {
  ++evaluated_;
  Training training = training_;
  training.buckets = buckets;
  const StepMetrics metrics = predict(model_, training).metrics;
  input_wait_ = metrics.input_wait;
  return metrics.step;
}

Duration BucketSteps::of(std::span<const int> ends, Duration limit) {
  if (ends.empty() || ends.back() != size())
    throw std::invalid_argument("buckets must hold every gradient");
  if (why_simulated_) {
    std::vector<std::vector<int>> buckets;
    int begin = 0;
    for (const int end : ends) {
      if (end <= begin || end > size())
        throw std::invalid_argument("a bucket must hold at least one gradient");
      buckets.emplace_back(model_.works.arrival.begin() + begin,
                           model_.works.arrival.begin() + end);
      begin = end;
    }
    return simulated(buckets);
  }
  ++evaluated_;
  prepare(ends);
  const Instant latest = Instant{} + limit;
  return (synchronous_ ? run<true>(latest) : run<false>(latest)) - Instant{};
}

void BucketSteps::prepare(std::span<const int> ends) {
  buckets_.clear();
  launch_after_.clear();
  std::fill(bucket_at_.begin(), bucket_at_.end(), nobody);
  int begin = 0;
  for (const int end : ends) {
    if (end <= begin) throw std::invalid_argument("a bucket must hold at least one gradient");
    const Bytes bytes = before_[at(end)] - before_[at(begin)];
    bucket_at_[at(begin)] = static_cast<std::int32_t>(buckets_.size());
    launch_after_.push_back(fired_[at(end - 1)]);
    buckets_.push_back(price(bytes));
    begin = end;
  }
  for (Lane& lane : lanes_) {
    lane.next = lane.bucket = lane.issued = lane.round_begin = 0;
    lane.shift = {};
    lane.host_clock = lane.end = lane.drained = Instant{};
    lane.wake = never;
    lane.busy = lane.draining = lane.fresh = lane.arrived = false;
  }
  head_ = arrived_ = 0;
  transferring_ = fresh_transfer_ = false;
  now_ = Instant{};
  if (Lane& lane = lanes_.front(); lanes_.size() == 1 && !lane.starts.empty()) {
    const Start& start = lane.starts[at(launch_after_.front())];
    lane.next = start.item;
    now_ = lane.host_clock = start.time;
  }
}

template <bool synchronous>
Instant BucketSteps::run(Instant limit) {
  const Lane& first = lanes_.front();
  while (true) {
    if (now_ + first.left[first.next] > limit) return now_ + first.left[first.next];
    bool progress = true;
    while (progress) {
      progress = false;
      for (Lane& lane : lanes_) progress |= advance<synchronous>(lane);
      progress |= arrive();
    }
    set_rates();
    const Instant next = soonest();
    if (next == never) break;
    now_ = next;
    take_events();
  }
  for (const Lane& lane : lanes_)
    if (lane.next != lane.items.size() || lane.busy || lane.issued != head_)
      throw std::logic_error("a step does not come to its end");
  Instant end = now_;
  if constexpr (synchronous)
    for (const Lane& lane : lanes_) end = std::max(end, lane.host_clock);
  return end;
}

/// Starts everything that a rank can start at `now_`. True if anything was started.
template <bool synchronous>
bool BucketSteps::advance(Lane& lane) {
  bool progress = false;
  lane.wake = never;
  while (!lane.busy && lane.next < lane.items.size()) {
    const Item& item = lane.items[lane.next];
    if (item.kind != Item::Kind::kernel) {
      if (!pass<synchronous>(lane, item)) return progress;
      progress = true;
      continue;
    }
    const Instant begin =
        synchronous ? lane.host_clock + item.host : Instant{} + item.first + lane.shift;
    if (begin > now_) {
      if (lanes_.size() > 1 || head_ != lane.issued) {
        lane.wake = begin;
        return progress;
      }
      now_ = begin;  // nothing else can happen before
    }
    if (lanes_.size() == 1) {
      const std::size_t before = lane.next;
      race<synchronous>(lane);
      if (lane.next != before) {
        progress = true;
        continue;
      }
    }
    ++lane.next;
    progress = true;
    lane.drained = synchronous ? Instant{} : Instant{} + item.drained + lane.shift;
    if (item.work == Duration::zero()) {
      if (now_ >= lane.drained) continue;
      lane.busy = lane.draining = true;
      lane.end = lane.drained;
      continue;
    }
    lane.memory_fraction = item.memory_fraction;
    lane.launch_rate = item.launch_rate;
    lane.computing.begin(item.work, now_);
    lane.busy = lane.fresh = true;
    lane.draining = false;
  }
  return progress;
}

/// Kernels of the only rank, back to back, as long as nothing happens beside them: no collective is
/// on, or the one that is outlasts them. Stops before the first kernel of which that cannot be
/// said, with `now_` where it would start. Launches and waits that no bucket has are passed on the
/// way.
template <bool synchronous>
void BucketSteps::race(Lane& lane) {
  const bool alone = head_ == lane.issued;
  if (!alone && !(transferring_ && !fresh_transfer_ && transfer_.slowdown == beside_compute_))
    return;
  if (alone && !synchronous && lane.next >= lane.last_round && lane.bucket < buckets_.size()) {
    const std::size_t launch = lane.launches[at(launch_after_[lane.bucket])];
    if (launch > lane.next) {  // not behind the last
      now_ = alone_until(lane, launch, now_);
      lane.next = launch;
      return;
    }
  }
  const Interference* beside = alone ? nullptr : &issued_[head_]->beside;
  const Item* const end = lane.items.data() + lane.items.size();
  const Item* item = lane.items.data() + lane.next;
  Instant now = now_;
  const Instant origin = Instant{} + lane.shift;
  const std::int32_t launched_next =
      lane.bucket < buckets_.size() ? launch_after_[lane.bucket] : nobody;
  for (; item != end; ++item) {
    if (item->kind != Item::Kind::kernel) {
      if (item->kind == Item::Kind::launch && item->position != launched_next) continue;
      if (item->kind == Item::Kind::wait && bucket_at_[at(item->position)] == nobody) continue;
      break;
    }
    if (item->work == Duration::zero()) break;
    Instant begin = now;
    if constexpr (synchronous) {
      // The host's own time between kernels is an event of its own: meanwhile a collective runs at
      // another rate.
      if (!alone && item->host > Duration::zero() && lane.host_clock + item->host > now) break;
      begin = std::max(now, lane.host_clock + item->host);
    } else {
      const Instant launched = origin + item->first;
      if (launched > now) {
        if (!alone) break;
        begin = launched;
      }
    }
    Instant done;
    if (alone) {
      done = begin + item->work;
    } else {
      const double slowdown = compute_slowdown(*beside, item->memory_fraction, item->launch_rate);
      done = begin + (slowdown == 1 ? item->work : scaled(item->work, slowdown));
    }
    if constexpr (!synchronous) done = std::max(done, origin + item->drained);
    if (!alone && done >= transfer_end_) break;
    now = done;
    if constexpr (synchronous) lane.host_clock = done;
  }
  lane.next = static_cast<std::size_t>(item - lane.items.data());
  now_ = now;
}

/// Passes an item that computes nothing. False if the rank has to wait in front of it.
template <bool synchronous>
bool BucketSteps::pass(Lane& lane, const Item& item) {
  const auto issue = [&](const AllReduce& collective, Duration host) {
    if constexpr (synchronous) lane.host_clock += host;
    const Instant enqueued = synchronous ? lane.host_clock : Instant{} + item.first + lane.shift;
    issued_[lane.issued] = &collective;
    return lane.taken_up[lane.issued++] = enqueued;
  };
  const auto wait_for = [&](std::size_t collective, Duration host) {
    if (collective >= head_) return false;
    if constexpr (synchronous) {
      lane.host_clock = std::max(lane.host_clock, now_) + host;
    } else if (Instant{} + item.first + lane.shift > now_) {
      lane.wake = Instant{} + item.first + lane.shift;
      return false;
    }
    return true;
  };
  switch (item.kind) {
    case Item::Kind::kernel:
      break;
    case Item::Kind::host:
      lane.host_clock += item.host;
      break;
    case Item::Kind::launch:
      while (lane.bucket < buckets_.size() && launch_after_[lane.bucket] == item.position) {
        if (lane.bucket == 0) lane.round_begin = lane.issued;
        if constexpr (!synchronous) lane.shift += launch_host_;
        issue(buckets_[lane.bucket], launch_host_);
        lane.taken_up[lane.issued - 1] += handover_;
        ++lane.bucket;
      }
      break;
    case Item::Kind::wait: {
      const std::int32_t bucket = bucket_at_[at(item.position)];
      if (bucket == nobody) break;
      if (!wait_for(lane.round_begin + at(bucket), synchronous ? wait_host_ : Duration{}))
        return false;
      lane.bucket = 0;  // of the next round
      break;
    }
    case Item::Kind::fixed_launch:
      issue(fixed_[at(item.position)], item.host);
      break;
    case Item::Kind::fixed_wait:
      if (!wait_for(lane.issued - 1 - at(item.position), item.host)) return false;
      break;
  }
  ++lane.next;
  return true;
}

/// Ranks reach the next collective; with the last of them it starts.
bool BucketSteps::arrive() {
  bool progress = false;
  for (Lane& lane : lanes_) {
    if (lane.arrived || lane.issued <= head_ || lane.taken_up[head_] > now_) continue;
    lane.arrived = progress = true;
    if (++arrived_ < lanes_.size()) continue;
    transferring_ = fresh_transfer_ = true;
    beside_compute_ = std::max(1.0, static_cast<double>(issued_[head_]->beside.communication));
    transfer_.begin(issued_[head_]->work, now_);
  }
  return progress;
}

void BucketSteps::set_rates() {
  bool active = false;
  for (Lane& lane : lanes_) {
    active |= lane.busy;
    if (!lane.busy || lane.draining) continue;
    double slowdown = 1;
    if (lane.arrived)
      slowdown = transferring_ ? compute_slowdown(issued_[head_]->beside, lane.memory_fraction,
                                                  lane.launch_rate)
                               : compute_slowdown(issued_[head_]->beside, 0);
    if (slowdown != lane.computing.slowdown)
      lane.computing.change(slowdown, now_);
    else if (!lane.fresh)
      continue;
    lane.fresh = false;
    lane.end = lane.computing.end();
  }
  if (!transferring_) return;
  const double slowdown = active ? beside_compute_ : 1;
  if (slowdown != transfer_.slowdown)
    transfer_.change(slowdown, now_);
  else if (!fresh_transfer_)
    return;
  fresh_transfer_ = false;
  transfer_end_ = transfer_.end();
}

Instant BucketSteps::soonest() const {
  Instant next = transferring_ ? transfer_end_ : never;
  for (const Lane& lane : lanes_) {
    next = std::min(next, lane.busy ? lane.end : lane.wake);
    if (!lane.arrived && lane.issued > head_) next = std::min(next, lane.taken_up[head_]);
  }
  return next;
}

/// What ends at `now_`.
void BucketSteps::take_events() {
  if (transferring_ && transfer_end_ == now_) {
    transferring_ = false;
    arrived_ = 0;
    ++head_;
    for (Lane& lane : lanes_) lane.arrived = false;
  }
  for (Lane& lane : lanes_) {
    if (!lane.busy || lane.end != now_) continue;
    if (!lane.draining && now_ < lane.drained) {
      lane.draining = true;
      lane.end = lane.drained;
      continue;
    }
    lane.busy = lane.draining = false;
    if (synchronous_) lane.host_clock = now_;
  }
}

}  // namespace ddpsim
