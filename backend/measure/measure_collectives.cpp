#include "backend/measure/measure_collectives.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "backend/measure/samples.hpp"
#include "model/base/index.hpp"

namespace ddpsim {
namespace {

using program::Collective;
using program::Collectives;
using program::Job;
using program::Program;
using program::Reduction;
using program::Slice;

constexpr Bytes beyond_caches{128 << 20};
constexpr std::int64_t element{4};

std::int64_t elements_of(const CollectiveCase& collective) {
  return payload_of(collective).count / element;
}

class Writer {
 public:
  Writer(const CollectiveCase& collective, int ranks, int count, bool waiting)
      : collective_(collective), count_(count), waiting_(waiting) {
    job_.labels = {"", "from", "to"};
    job_.streams = {{.name = "host"}, {.name = "communication", .beside = true}};
    Work& work = job_.works.emplace_back();
    work.operation = collective.operation;
    work.payload = payload_of(collective);
    work.group = collective.ranks == ranks ? 0 : collective.ranks;
    Work& wait = job_.works.emplace_back();
    wait.operation = Operation::wait;
    wait.launches = 0;
    job_.communicators = {{.name = "groups"}};
    add_groups(ranks);
    add_buffers();
  }

  Job written() {
    for (std::size_t kind = 0; kind < idle_; ++kind) write(job_.programs[kind], kind);
    return std::move(job_);
  }

 private:
  bool is_message() const { return collective_.operation == Operation::send_receive; }
  bool in_place() const {
    return collective_.operation == Operation::all_reduce ||
           collective_.operation == Operation::broadcast || is_message();
  }

  /// The ranks of a pair have different programs, and those without a group an empty one.
  void add_groups(int ranks) {
    idle_ = is_message() ? 2 : 1;
    const int grouped = ranks / collective_.ranks * collective_.ranks;
    job_.programs.resize(grouped < ranks ? idle_ + 1 : idle_);
    for (int rank = 0; rank < ranks; ++rank) {
      const int place = rank % collective_.ranks;
      job_.program_of.push_back(static_cast<std::uint16_t>(rank >= grouped ? idle_
                                                           : is_message()  ? place
                                                                           : 0));
      if (rank >= grouped) continue;
      if (place == 0) job_.communicators.front().groups.emplace_back();
      job_.communicators.front().groups.back().push_back(rank);
    }
  }

  void add_buffers() {
    const std::int64_t size = collective_.size.count;
    pieces_ =
        std::clamp<std::int64_t>(beyond_caches.count / std::max<std::int64_t>(size, 1), 1, count_);
    from_ = elements_of(collective_);
    to_ = from_;
    if (collective_.operation == Operation::all_gather) to_ = collective_.ranks * from_;
    if (collective_.operation == Operation::reduce_scatter) to_ = from_ / collective_.ranks;
    add_buffer(1, from_);
    if (!in_place()) add_buffer(2, to_);
  }
  void add_buffer(std::int16_t name, std::int64_t elements) {
    job_.buffers.push_back({.holds = program::Holds::bucket,
                            .name = name,
                            .elements = pieces_ * elements,
                            .life = program::Life::step,
                            .start = program::Start::zeros});
  }

  void write(Program& program, std::size_t kind) {
    for (int i = 0; i < count_; ++i) {
      const std::int64_t piece = i % pieces_;
      const Slice from{.buffer = 0, .begin = piece * from_, .count = from_};
      const Slice to = in_place() ? from : Slice{.buffer = 1, .begin = piece * to_, .count = to_};
      add(program, action(from, to, kind), 0, 1);
      if (waiting_ || i + 1 == count_) wait(program);
    }
  }
  void wait(Program& program) {
    program.after.push_back(static_cast<std::uint32_t>(program.tasks.size() - 1));
    add(program, program::Wait{}, 1, 0);
  }

  void add(Program& program, program::Action action, std::uint32_t work, std::uint8_t stream) {
    job_.own.deeds.push_back({std::move(action), {}});
    program.tasks.push_back({.work = work,
                             .deed = static_cast<std::uint32_t>(job_.own.deeds.size() - 1),
                             .after_end = static_cast<std::uint32_t>(program.after.size()),
                             .stream = stream});
  }

  program::Action action(const Slice& from, const Slice& to, std::size_t kind) const {
    if (is_message()) {
      if (kind == 0) return program::Send{.communicator = 0, .peer = 1, .what = from};
      return program::Receive{.communicator = 0, .peer = 0, .what = from};
    }
    const Collectives what = kind_of(collective_.operation);
    const bool adds = what == Collectives::all_reduce || what == Collectives::reduce_scatter;
    return Collective{
        .what = what, .reduction = adds ? Reduction::sum : Reduction::none, .from = from, .to = to};
  }

  static Collectives kind_of(Operation operation) {
    if (operation == Operation::all_to_all) return Collectives::all_to_all;
    switch (collective_of(operation)) {
      case CollectiveOperation::all_reduce:
        return Collectives::all_reduce;
      case CollectiveOperation::all_gather:
        return Collectives::all_gather;
      case CollectiveOperation::reduce_scatter:
        return Collectives::reduce_scatter;
      case CollectiveOperation::broadcast:
        return Collectives::broadcast;
    }
    return Collectives::all_reduce;
  }

  const CollectiveCase& collective_;
  int count_;
  bool waiting_;                    ///< for each before the next
  std::size_t idle_ = 1;            ///< the program of ranks without a group, if there are any
  std::int64_t pieces_ = 1;         ///< of each buffer
  std::int64_t from_ = 0, to_ = 0;  ///< elements of a piece
  Job job_;
};

}  // namespace

Bytes payload_of(const CollectiveCase& collective) {
  const std::int64_t share = element * collective.ranks;
  const std::int64_t shares =
      std::max<std::int64_t>(1, (collective.size.count + share - 1) / share);
  return Bytes{collective.operation == Operation::all_gather ? shares * element : shares * share};
}

namespace {

program::Job written(const CollectiveCase& collective, int ranks, int count, bool waiting) {
  if (collective.ranks < 2 || collective.ranks > ranks || count < 1)
    throw std::invalid_argument(
        fmt::format("{} collectives among {} of {} ranks", count, collective.ranks, ranks));
  return Writer(collective, ranks, count, waiting).written();
}

}  // namespace

program::Job job_of_collectives(const CollectiveCase& collective, int ranks, int count) {
  return written(collective, ranks, count, false);
}
program::Job job_of_awaited_collectives(const CollectiveCase& collective, int ranks, int count) {
  return written(collective, ranks, count, true);
}

std::vector<Duration> time_collectives(Backend& backend, const program::Job& job) {
  const RankRun run = backend.run(job);
  const std::size_t count = job.programs.front().tasks.size() - 1;
  std::vector<Duration> mine;  // when each began and ended here
  if (!run.times.empty())
    for (std::size_t i = 0; i < count; ++i)
      for (const Instant each : {run.times[i].start, run.times[i].end})
        mine.push_back(each - Instant{});
  const std::vector<Duration> all = gathered(backend, mine);
  std::vector<Duration> times;
  for (const std::vector<std::int32_t>& group : job.communicators.front().groups)
    for (std::size_t i = 1; i < count; ++i) {
      Duration arrived{}, done{};
      for (const std::int32_t rank : group) {
        const std::size_t place = 2 * (at(rank) * count + i);
        arrived = std::max(arrived, all[place]);
        done = std::max(done, all[place + 1]);
      }
      times.push_back(done - arrived);
    }
  return times;
}

Duration time_awaited_collectives(Backend& backend, const program::Job& job) {
  const RankRun run = backend.run(job);
  if (run.times.size() < 4) return Duration::zero();  // a collective and a wait each
  const Instant first = run.times[0].end, last = run.times[run.times.size() - 2].end;
  return (last - first) / static_cast<std::int64_t>(run.times.size() / 2 - 1);
}

}  // namespace ddpsim
