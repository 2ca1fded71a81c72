#include "sim/tune/bucket_structure.hpp"

#include <algorithm>
#include <vector>

namespace ddpsim {
namespace {

using Why = std::optional<std::string_view>;

bool sends_bucket(const Task& task) {
  return task.bucket != nobody && is_collective(task.operation);
}

bool awaits_bucket(const Task& task) {
  return task.bucket != nobody && task.operation == Operation::wait;
}

/// Is the task a bucket's all-reduce or the wait for one? Only such tasks may differ between
/// schedules that are compared.
bool is_of_bucket(const Task& task) {
  return sends_bucket(task) || awaits_bucket(task);
}

/// Does it put a gradient in its place in the bucket?
bool fills(const Task& task) {
  return task.bucket != nobody && task.parameter != nobody &&
         (task.operation == Operation::copy_in || task.operation == Operation::divide);
}

/// Looks at the tasks of a schedule one by one, in order.
class TaskCheck {
 public:
  explicit TaskCheck(const Schedule& schedule)
      : schedule_(schedule),
        kernel_stream_(schedule.synchronous ? Stream::host : Stream::compute) {}

  Why why_unknown() {
    for (std::size_t i = 0; i < schedule_.tasks.size(); ++i) {
      const Task& task = schedule_.tasks[i];
      if (const Why why = why_unknown(task)) return why;
      if (task.stream == kernel_stream_) last_kernel_ = static_cast<std::int32_t>(i);
    }
    return std::nullopt;
  }

 private:
  Why why_unknown(const Task& task) const {
    const Work& work = schedule_.work_of(task);
    if (task.stream != Stream::host && task.stream != Stream::compute &&
        task.stream != Stream::communication)
      return "tasks run on more streams";
    if ((task.stream == Stream::communication) != is_collective(task.operation))
      return "the communication stream computes";
    if (work.computes() && task.stream != kernel_stream_) return "host and device both compute";
    if (work.communicator != 0) return "there are several communicators";
    if (task.step != nobody) return "a comm hook has steps";
    if (task.owner != nobody && !is_collective(task.operation)) return "ranks have different work";
    if (!schedule_.synchronous && host_stands_still(task)) return "the host waits for the device";
    if (is_collective(task.operation)) return why_unknown_collective(task);
    if (task.operation == Operation::wait) return why_unknown_wait(task);
    if (task.after_count > 0) return "a kernel waits for more than its stream";
    if (is_kernel(task.operation) && task.bucket != nobody && task.parameter == nobody)
      return "kernels work on whole buckets";
    return std::nullopt;
  }

  static bool host_stands_still(const Task& task) {
    return task.host_waits || (task.stream == Stream::host && task.after_count > 0);
  }

  Why why_unknown_collective(const Task& task) const {
    const bool handed_over = schedule_.work_of(task).handed_over;
    if (sends_bucket(task)) {
      const bool plain = task.operation == Operation::all_reduce && handed_over &&
                         schedule_.work_of(task).message == Message::gradients;
      if (!plain) return "a bucket is not one all-reduce";
    } else if (handed_over) {
      return "more than buckets is handed over";
    }
    if (!waits_for_kernels(task))
      return "a collective does not just wait for the kernels before it";
    return std::nullopt;
  }

  /// Does the task wait for kernels alone? The host of a synchronous device has run all earlier
  /// kernels itself.
  bool waits_for_kernels(const Task& task) const {
    const auto after = schedule_.waits_for(task);
    if (schedule_.synchronous)
      return std::all_of(after.begin(), after.end(), [this](std::uint32_t earlier) {
        return schedule_.tasks[earlier].stream == kernel_stream_;
      });
    if (last_kernel_ == nobody) return after.empty();
    return after.size() == 1 && static_cast<std::int32_t>(after.front()) == last_kernel_;
  }

  /// Why the wait is not one for a single collective and for kernels; kernels come earlier on its
  /// stream in any case.
  Why why_unknown_wait(const Task& task) const {
    const auto after = schedule_.waits_for(task);
    if (after.empty()) return "a wait is for no collective";
    const Task& awaited = schedule_.tasks[after.front()];
    if (awaits_bucket(task) && (!sends_bucket(awaited) || awaited.bucket != task.bucket))
      return "a bucket's result is not that of its all-reduce";
    if (!is_collective(awaited.operation)) return "a wait is for no collective";
    if (sends_bucket(awaited) != awaits_bucket(task)) return "others wait for a bucket";
    for (const std::uint32_t each : after.subspan(1))
      if (schedule_.tasks[each].stream != kernel_stream_)
        return "a wait is for several collectives";
    return std::nullopt;
  }

  const Schedule& schedule_;
  const Stream kernel_stream_;
  std::int32_t last_kernel_ = nobody;  ///< before the task
};

/// Do the buckets of `each`, which hold one gradient, come in rounds?
class RoundCheck {
 public:
  explicit RoundCheck(const Schedule& each)
      : each_(each), count_(static_cast<std::int32_t>(each.buckets.size())) {}

  Why why_other_rounds() {
    begin_round();
    for (const Task& task : each_.tasks) {
      const Why why = fills(task)           ? fill(task)
                      : sends_bucket(task)  ? send(task)
                      : awaits_bucket(task) ? await(task)
                                            : other(task);
      if (why) return why;
      before_ = &task;
    }
    if (awaited_ != count_) return "not every bucket is sent and waited for";
    const auto rounds = order_.size() / each_.buckets.size();
    if (copied_ != 0 && copied_ != rounds * each_.buckets.size())
      return "not every gradient is copied back";
    return std::nullopt;
  }

 private:
  void begin_round() {
    filled_.assign(each_.buckets.size(), false);
    fills_ = full_ = sent_ = awaited_ = 0;
  }

  Why fill(const Task& task) {
    if (awaited_ == count_) begin_round();
    if (full_ == count_ || filled_[at(task.bucket)]) return "a gradient is put in its bucket twice";
    const auto place = static_cast<std::size_t>(fills_++);
    if (order_.size() >= each_.buckets.size() && order_[place] != task.bucket)
      return "gradients come in another order in another micro-batch";
    order_.push_back(task.bucket);
    filled_[at(task.bucket)] = true;
    if (sent_ < full_) return late;
    while (full_ < count_ && filled_[at(full_)]) ++full_;
    return std::nullopt;
  }

  Why send(const Task& task) {
    if (task.bucket != sent_ || sent_ >= full_) return late;
    ++sent_;
    return std::nullopt;
  }

  Why await(const Task& task) {
    if (sent_ != count_ || task.bucket != awaited_) return "buckets are not waited for in order";
    const bool adjacent = before_ != nullptr && (awaits_bucket(*before_) || copies_back(*before_));
    if (awaited_ > 0 && !adjacent) return "something else is done between two waits";
    ++awaited_;
    return std::nullopt;
  }

  Why other(const Task& task) {
    if (sent_ < full_) return late;
    if (is_collective(task.operation) && sent_ > 0 && sent_ < count_)
      return "something else is sent between buckets";
    if (copies_back(task)) {
      if (before_ == nullptr || !awaits_bucket(*before_) || before_->bucket != task.bucket)
        return "a gradient is copied back apart from its wait";
      ++copied_;
    }
    return std::nullopt;
  }

  static bool copies_back(const Task& task) {
    return task.bucket != nobody && task.operation == Operation::copy_out;
  }

  static constexpr std::string_view late = "a bucket is not sent as soon as its turn comes";

  const Schedule& each_;
  const std::int32_t count_;
  const Task* before_ = nullptr;     ///< the task before
  std::vector<std::int32_t> order_;  ///< buckets as they were filled, round after round
  std::size_t copied_ = 0;           ///< gradients, in all rounds
  // State of the present round.
  std::vector<bool> filled_;  ///< [bucket]
  std::int32_t fills_ = 0;    ///< so many are full
  std::int32_t full_ = 0;     ///< the first so many are full
  std::int32_t sent_ = 0;     ///< the first so many have been sent
  std::int32_t awaited_ = 0;  ///< the first so many have been waited for
};

/// Compares tasks of two schedules.
class Likeness {
 public:
  Likeness(const Schedule& a, const Schedule& b) : a_(a), b_(b), known_(a.works.size(), unknown) {}

  /// Are they the same but for the buckets they belong to?
  bool are_alike(const Task& x, const Task& y) {
    return x.operation == y.operation && x.stream == y.stream && x.host_waits == y.host_waits &&
           x.parameter == y.parameter && x.micro_batch == y.micro_batch &&
           (x.bucket == nobody) == (y.bucket == nobody) && is_same_work(x.work, y.work);
  }

 private:
  bool is_same_work(std::uint32_t x, std::uint32_t y) {
    if (known_[x] == y) return true;
    if (!(a_.works[x] == b_.works[y])) return false;
    known_[x] = y;
    return true;
  }

  static constexpr std::uint32_t unknown = ~std::uint32_t{0};

  const Schedule& a_;
  const Schedule& b_;
  std::vector<std::uint32_t> known_;  ///< [work of a] an equal one of b
};

/// How many launches and waits of buckets stand in front of a task that belongs to no bucket.
struct Between {
  int launches = 0, waits = 0;
  bool operator==(const Between&) const = default;
};

/// Goes on to the next task that is of no bucket. Counts launches of bucket `last`, with which all
/// have been sent, and waits for the first one.
Between skip_buckets(const std::vector<Task>& tasks, std::size_t& next, std::int32_t last) {
  Between between;
  for (; next < tasks.size() && is_of_bucket(tasks[next]); ++next) {
    between.launches += sends_bucket(tasks[next]) && tasks[next].bucket == last ? 1 : 0;
    between.waits += awaits_bucket(tasks[next]) && tasks[next].bucket == 0 ? 1 : 0;
  }
  return between;
}

Why why_not_alike(const Schedule& whole, const Schedule& each) {
  constexpr std::string_view other = "other kernels run under other buckets";
  const auto last = static_cast<std::int32_t>(each.buckets.size()) - 1;
  Likeness likeness(whole, each);
  std::size_t i = 0, j = 0;
  while (true) {
    const Between a = skip_buckets(whole.tasks, i, 0), b = skip_buckets(each.tasks, j, last);
    if (a != b) return "one bucket is sent or waited for elsewhere than several";
    if (i == whole.tasks.size() || j == each.tasks.size()) break;
    if (!likeness.are_alike(whole.tasks[i], each.tasks[j])) return other;
    ++i, ++j;
  }
  if (i != whole.tasks.size() || j != each.tasks.size()) return other;
  return std::nullopt;
}

}  // namespace

std::optional<std::string_view> why_more_than_buckets(const Schedule& whole, const Schedule& each) {
  if (whole.collectives_at_once > 1) return "several collectives are under way at a time";
  if (whole.buckets.size() != 1 || whole.buckets.front().parameters.size() != each.buckets.size())
    return "not every gradient is in DDP's buckets";
  for (const Schedule* schedule : {&whole, &each})
    if (const Why why = TaskCheck(*schedule).why_unknown()) return why;
  if (const Why why = RoundCheck(each).why_other_rounds()) return why;
  return why_not_alike(whole, each);
}

}  // namespace ddpsim
