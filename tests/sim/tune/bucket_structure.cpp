#include "tests/sim/tune/bucket_structure.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "model/timeline/job_timeline.hpp"

namespace ddpsim {
namespace {

using Why = std::optional<std::string_view>;

/// The one program of a job, task by task.
class Tasks {
 public:
  explicit Tasks(const program::Job& job) : job_(job), program_(job.programs.front()) {}

  std::size_t size() const { return program_.tasks.size(); }
  const program::Task& task(std::size_t t) const { return program_.tasks[t]; }
  const Work& work(std::size_t t) const { return job_.works[task(t).work]; }
  const program::Origin& origin(std::size_t t) const { return job_.deed_of(task(t)).origin; }
  Operation operation(std::size_t t) const { return operation_of(job_, task(t)); }
  std::span<const std::uint32_t> waits_for(std::size_t t) const { return program_.waits_for(t); }
  const program::Stream& stream(std::size_t t) const { return job_.streams[task(t).stream]; }
  bool on_host(std::size_t t) const { return task(t).stream == 0; }

  std::int32_t bucket(std::size_t t) const { return origin(t).group; }
  bool has_bucket(std::size_t t) const { return bucket(t) != nobody; }
  bool sends_bucket(std::size_t t) const { return has_bucket(t) && is_collective(operation(t)); }
  bool awaits_bucket(std::size_t t) const {
    return has_bucket(t) && operation(t) == Operation::wait;
  }
  /// Is the task a bucket's all-reduce or the wait for one? Only such tasks may differ between
  /// programs that are compared.
  bool is_of_bucket(std::size_t t) const { return sends_bucket(t) || awaits_bucket(t); }
  /// Does it put a gradient in its place in the bucket?
  bool fills(std::size_t t) const {
    return has_bucket(t) && origin(t).parameter != nobody &&
           (operation(t) == Operation::copy_in || operation(t) == Operation::divide);
  }
  bool copies_back(std::size_t t) const {
    return has_bucket(t) && operation(t) == Operation::copy_out;
  }

 private:
  const program::Job& job_;
  const program::Program& program_;
};

/// Looks at the tasks of a program one by one, in order.
class TaskCheck {
 public:
  explicit TaskCheck(const program::Job& job) : tasks_(job) {
    // A network may have no kernels in its forward pass.
    for (std::size_t t = 0; t < tasks_.size(); ++t)
      if (tasks_.operation(t) == Operation::backward) kernel_stream_ = tasks_.task(t).stream;
  }

  Why why_unknown() {
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      if (const Why why = why_unknown(t)) return why;
      if (tasks_.task(t).stream == kernel_stream_) last_kernel_ = static_cast<std::int32_t>(t);
    }
    return std::nullopt;
  }

 private:
  bool synchronous() const { return kernel_stream_ == 0; }

  Why why_unknown(std::size_t t) const {
    const Work& work = tasks_.work(t);
    const bool sends = is_collective(tasks_.operation(t));
    if (tasks_.stream(t).beside && !sends) return "tasks run on more streams";
    if (work.computes() && tasks_.task(t).stream != kernel_stream_)
      return "host and device both compute";
    if (work.communicator != 0) return "there are several communicators";
    if (tasks_.origin(t).label != 0) return "a comm hook has steps";
    if (!synchronous() && tasks_.on_host(t) && !tasks_.waits_for(t).empty())
      return "the host waits for the device";
    if (sends) return why_unknown_collective(t);
    if (tasks_.operation(t) == Operation::wait) return why_unknown_wait(t);
    if (!tasks_.waits_for(t).empty()) return "a kernel waits for more than its stream";
    if (is_kernel(tasks_.operation(t)) && tasks_.has_bucket(t) &&
        tasks_.origin(t).parameter == nobody)
      return "kernels work on whole buckets";
    return std::nullopt;
  }

  Why why_unknown_collective(std::size_t t) const {
    const bool handed_over = tasks_.work(t).handed_over;
    if (tasks_.sends_bucket(t)) {
      const bool plain = tasks_.operation(t) == Operation::all_reduce && handed_over &&
                         tasks_.work(t).message == Message::gradients;
      if (!plain) return "a bucket is not one all-reduce";
    } else if (handed_over) {
      return "more than buckets is handed over";
    }
    if (!waits_for_kernels(t)) return "a collective does not just wait for the kernels before it";
    return std::nullopt;
  }

  /// Does the task wait for kernels alone? The host of a synchronous device has run all earlier
  /// kernels itself.
  bool waits_for_kernels(std::size_t t) const {
    const auto after = tasks_.waits_for(t);
    if (synchronous())
      return std::all_of(after.begin(), after.end(), [this](std::uint32_t earlier) {
        return tasks_.task(earlier).stream == kernel_stream_;
      });
    if (last_kernel_ == nobody) return after.empty();
    return after.size() == 1 && static_cast<std::int32_t>(after.front()) == last_kernel_;
  }

  /// Why the wait is not one for a single collective and for kernels; kernels come earlier on its
  /// stream in any case.
  Why why_unknown_wait(std::size_t t) const {
    const auto after = tasks_.waits_for(t);
    if (after.empty()) return "a wait is for no collective";
    const std::uint32_t awaited = after.front();
    if (tasks_.awaits_bucket(t) &&
        (!tasks_.sends_bucket(awaited) || tasks_.bucket(awaited) != tasks_.bucket(t)))
      return "a bucket's result is not that of its all-reduce";
    if (!is_collective(tasks_.operation(awaited))) return "a wait is for no collective";
    if (tasks_.sends_bucket(awaited) != tasks_.awaits_bucket(t)) return "others wait for a bucket";
    for (const std::uint32_t each : after.subspan(1))
      if (tasks_.task(each).stream != kernel_stream_) return "a wait is for several collectives";
    return std::nullopt;
  }

  Tasks tasks_;
  std::uint8_t kernel_stream_ = 0;
  std::int32_t last_kernel_ = nobody;  ///< before the task
};

/// Do the buckets of `each`, which hold one gradient, come in rounds?
class RoundCheck {
 public:
  explicit RoundCheck(const program::Job& each)
      : tasks_(each), count_(static_cast<std::int32_t>(each.groups.size())) {}

  Why why_other_rounds() {
    begin_round();
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      const Why why = tasks_.fills(t)           ? fill(tasks_.bucket(t))
                      : tasks_.sends_bucket(t)  ? send(tasks_.bucket(t))
                      : tasks_.awaits_bucket(t) ? await(t)
                                                : other(t);
      if (why) return why;
    }
    if (awaited_ != count_) return "not every bucket is sent and waited for";
    const auto rounds = order_.size() / at(count_);
    if (copied_ != 0 && copied_ != rounds * at(count_)) return "not every gradient is copied back";
    return std::nullopt;
  }

 private:
  void begin_round() {
    filled_.assign(at(count_), false);
    fills_ = full_ = sent_ = awaited_ = 0;
  }

  Why fill(std::int32_t bucket) {
    if (awaited_ == count_) begin_round();
    if (full_ == count_ || filled_[at(bucket)]) return "a gradient is put in its bucket twice";
    const auto place = static_cast<std::size_t>(fills_++);
    if (order_.size() >= at(count_) && order_[place] != bucket)
      return "gradients come in another order in another micro-batch";
    order_.push_back(bucket);
    filled_[at(bucket)] = true;
    if (sent_ < full_) return late;
    while (full_ < count_ && filled_[at(full_)]) ++full_;
    return std::nullopt;
  }

  Why send(std::int32_t bucket) {
    if (bucket != sent_ || sent_ >= full_) return late;
    ++sent_;
    return std::nullopt;
  }

  Why await(std::size_t t) {
    if (sent_ != count_ || tasks_.bucket(t) != awaited_)
      return "buckets are not waited for in order";
    const bool adjacent = t > 0 && (tasks_.awaits_bucket(t - 1) || tasks_.copies_back(t - 1));
    if (awaited_ > 0 && !adjacent) return "something else is done between two waits";
    ++awaited_;
    return std::nullopt;
  }

  Why other(std::size_t t) {
    if (sent_ < full_) return late;
    if (is_collective(tasks_.operation(t)) && sent_ > 0 && sent_ < count_)
      return "something else is sent between buckets";
    if (tasks_.copies_back(t)) {
      if (t == 0 || !tasks_.awaits_bucket(t - 1) || tasks_.bucket(t - 1) != tasks_.bucket(t))
        return "a gradient is copied back apart from its wait";
      ++copied_;
    }
    return std::nullopt;
  }

  static constexpr std::string_view late = "a bucket is not sent as soon as its turn comes";

  Tasks tasks_;
  const std::int32_t count_;
  std::vector<std::int32_t> order_;  ///< buckets as they were filled, round after round
  std::size_t copied_ = 0;           ///< gradients, in all rounds
  // State of the present round.
  std::vector<bool> filled_;  ///< [bucket]
  std::int32_t fills_ = 0;    ///< so many are full
  std::int32_t full_ = 0;     ///< the first so many are full
  std::int32_t sent_ = 0;     ///< the first so many have been sent
  std::int32_t awaited_ = 0;  ///< the first so many have been waited for
};

/// Compares tasks of two jobs.
class Likeness {
 public:
  Likeness(const program::Job& a, const program::Job& b)
      : a_(a), b_(b), known_(a.works.size(), unknown) {}

  /// Are they the same but for the buckets they belong to?
  bool are_alike(std::size_t x, std::size_t y) {
    const program::Task &one = a_.task(x), &other = b_.task(y);
    return a_.operation(x) == b_.operation(y) && one.stream == other.stream &&
           a_.origin(x).parameter == b_.origin(y).parameter &&
           one.micro_batch == other.micro_batch && a_.has_bucket(x) == b_.has_bucket(y) &&
           is_same_work(x, y);
  }

 private:
  bool is_same_work(std::size_t x, std::size_t y) {
    std::uint32_t& known = known_[a_.task(x).work];
    if (known == b_.task(y).work) return true;
    if (!(a_.work(x) == b_.work(y))) return false;
    known = b_.task(y).work;
    return true;
  }

  static constexpr std::uint32_t unknown = ~std::uint32_t{0};

  Tasks a_, b_;
  std::vector<std::uint32_t> known_;  ///< [work of a] an equal one of b
};

/// How many launches and waits of buckets stand in front of a task that belongs to no bucket.
struct Between {
  int launches = 0, waits = 0;
  bool operator==(const Between&) const = default;
};

/// Goes on to the next task that is of no bucket. Counts launches of bucket `last`, with which all
/// have been sent, and waits for the first one.
Between skip_buckets(const Tasks& tasks, std::size_t& next, std::int32_t last) {
  Between between;
  for (; next < tasks.size() && tasks.is_of_bucket(next); ++next) {
    between.launches += tasks.sends_bucket(next) && tasks.bucket(next) == last ? 1 : 0;
    between.waits += tasks.awaits_bucket(next) && tasks.bucket(next) == 0 ? 1 : 0;
  }
  return between;
}

Why why_not_alike(const program::Job& whole, const program::Job& each) {
  constexpr std::string_view other = "other kernels run under other buckets";
  const auto last = static_cast<std::int32_t>(each.groups.size()) - 1;
  const Tasks of_whole(whole), of_each(each);
  Likeness likeness(whole, each);
  std::size_t i = 0, j = 0;
  while (true) {
    const Between a = skip_buckets(of_whole, i, 0), b = skip_buckets(of_each, j, last);
    if (a != b) return "one bucket is sent or waited for elsewhere than several";
    if (i == of_whole.size() || j == of_each.size()) break;
    if (!likeness.are_alike(i, j)) return other;
    ++i, ++j;
  }
  if (i != of_whole.size() || j != of_each.size()) return other;
  return std::nullopt;
}

}  // namespace

std::optional<std::string_view> why_more_than_buckets(const program::Job& whole,
                                                      const program::Job& each) {
  if (std::ranges::any_of(whole.communicators,
                          [](const program::Communicator& all) { return all.at_once > 1; }))
    return "several collectives are under way at a time";
  if (whole.groups.size() != 1 || whole.groups.front().parameters.size() != each.groups.size())
    return "not every gradient is in DDP's buckets";
  for (const program::Job* job : {&whole, &each})
    if (const Why why = TaskCheck(*job).why_unknown()) return why;
  if (whole.programs.size() > 1) return "ranks have different work";
  if (const Why why = RoundCheck(each).why_other_rounds()) return why;
  return why_not_alike(whole, each);
}

}  // namespace ddpsim
