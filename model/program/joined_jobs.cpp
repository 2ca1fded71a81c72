#include "model/program/joined_jobs.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "model/program/renumbered.hpp"

namespace ddpsim::program {
namespace {

constexpr std::uint32_t none = ~std::uint32_t{0};

/// Where a kind of step has come to lie in the joined job.
struct Placed {
  Renumbering numbers;
  std::vector<std::uint8_t> streams;
  std::vector<std::uint32_t> works, deeds;
};

/// The number of an equal element, which is added if it is new.
template <typename Element, typename Same>
std::size_t number_in(std::vector<Element>& all, const Element& wanted, Same&& same) {
  const auto found =
      std::ranges::find_if(all, [&](const Element& each) { return same(each, wanted); });
  const auto number = static_cast<std::size_t>(found - all.begin());
  if (found == all.end()) all.push_back(wanted);
  return number;
}

/// What each kind of step is made of, once.
class Parts {
 public:
  explicit Parts(Job& all) : all_(all) {}

  Placed add(const Job& kind) {
    Placed placed;
    for (const std::string& label : kind.labels)
      placed.numbers.labels.push_back(static_cast<std::int16_t>(
          number_in(all_.labels, label, [](const auto& a, const auto& b) { return a == b; })));
    for (const Communicator& each : kind.communicators)
      placed.numbers.communicators.push_back(static_cast<std::int16_t>(
          number_in(all_.communicators, each, [](const Communicator& a, const Communicator& b) {
            return std::tie(a.name, a.at_once, a.groups) == std::tie(b.name, b.at_once, b.groups);
          })));
    for (const Stream& each : kind.streams)
      placed.streams.push_back(static_cast<std::uint8_t>(number_in(
          all_.streams, each, [](const Stream& a, const Stream& b) { return a.name == b.name; })));
    for (const Work& work : kind.works) placed.works.push_back(number_of(work));
    placed.numbers.buffers.assign(kind.buffers.size(), no_buffer);
    for (BufferId id = 0; id < kind.buffers.size(); ++id) place(kind, id, placed.numbers);
    if (kind.known) add(*kind.known, placed);
    add(kind.own, placed);
    all_.groups.insert(all_.groups.end(), kind.groups.begin(), kind.groups.end());
    return placed;
  }

  std::uint32_t number_of(const Work& work) {
    const std::uint32_t number = table_.add(work);
    if (number == all_.works.size()) all_.works.push_back(work);
    return number;
  }

 private:
  /// Views after what they lie in.
  void place(const Job& kind, BufferId id, Renumbering& numbers) {
    if (numbers.buffers[id] != no_buffer) return;
    Buffer buffer = kind.buffers[id];
    buffer.name = numbers.labels[at(buffer.name)];
    if (buffer.is_view()) {
      place(kind, buffer.inside.buffer, numbers);
      buffer.inside = renumbered(buffer.inside, numbers);
    }
    const Slice& in = buffer.inside;
    const auto [found, is_new] = buffers_.try_emplace(
        {buffer.holds, buffer.index, buffer.name, buffer.type, buffer.elements, buffer.place,
         buffer.life, buffer.start, in.buffer, in.part_of, in.begin, in.count},
        static_cast<BufferId>(all_.buffers.size()));
    if (is_new) all_.buffers.push_back(buffer);
    numbers.buffers[id] = found->second;
  }

  void add(const Actions& actions, Placed& placed) {
    placed.numbers.slices = static_cast<std::uint32_t>(all_.own.slices.size());
    for (const Slice& slice : actions.slices)
      all_.own.slices.push_back(renumbered(slice, placed.numbers));
    for (const Deed& deed : actions.deeds) {
      placed.deeds.push_back(static_cast<std::uint32_t>(all_.own.deeds.size()));
      Deed& added =
          all_.own.deeds.emplace_back(renumbered(deed.action, placed.numbers), deed.origin);
      added.origin.label = placed.numbers.labels[at(deed.origin.label)];
      if (deed.origin.group != nobody)
        added.origin.group += static_cast<std::int32_t>(all_.groups.size());
    }
  }

  using Key = std::tuple<Holds, std::int32_t, std::int16_t, DType, std::int64_t, Place, Life, Start,
                         BufferId, std::int16_t, std::int64_t, std::int64_t>;

  Job& all_;
  WorkTable table_;  ///< numbered as Job::works
  std::map<Key, BufferId> buffers_;
};

class Joiner {
 public:
  Joiner(std::span<const Job* const> kinds, std::span<const std::int32_t> sequence,
         const std::function<bool(int)>& samples)
      : samples_(samples), parts_(joined_.job) {
    const Job& first = *kinds[at(sequence.front())];
    Job& all = joined_.job;
    all.program_of = first.program_of;
    all.state = first.state;
    all.hook = first.hook;
    all.seed = first.seed;
    take_streams(kinds);
    for (const Job* kind : kinds) placed_.push_back(parts_.add(*kind));
    read_ = static_cast<std::uint32_t>(all.own.deeds.size());
    all.own.deeds.push_back({Wait{}, {}});
    take_passes(kinds);
    const auto last = at(sequence.back());
    for (const Slice& each : kinds[last]->gradients)
      all.gradients.push_back(renumbered(each, placed_[last].numbers));
    for (Part part : kinds[last]->parts) {
      if (part.of != nobody) part.of = placed_[last].numbers.communicators[at(part.of)];
      all.parts.push_back(part);
    }
    all.programs.emplace_back();
    for (const std::int32_t kind : sequence) append(*kinds[at(kind)], placed_[at(kind)]);
  }

  JoinedJobs result() { return std::move(joined_); }

 private:
  Program& all() { return joined_.job.programs.front(); }
  std::uint32_t end() { return static_cast<std::uint32_t>(all().tasks.size()); }

  /// In the order of the kind that has most of them: what could begin at one instant begins in the
  /// order of streams.
  void take_streams(std::span<const Job* const> kinds) {
    const auto most =
        std::ranges::max_element(kinds, {}, [](const Job* each) { return each->streams.size(); });
    joined_.job.streams = (*most)->streams;
  }

  void take_passes(std::span<const Job* const> kinds) {
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      if (kinds[kind]->passes.forward.empty()) continue;
      Passes& passes = joined_.job.passes;
      passes = kinds[kind]->passes;
      for (auto* pass : {&passes.forward, &passes.backward, &passes.optimizer})
        for (std::uint32_t& work : *pass) work = placed_[kind].works[work];
      return;
    }
  }

  void append(const Job& kind, const Placed& placed) {
    const Program& step = kind.programs.front();
    const std::uint32_t begin = end();
    joined_.begins.push_back(begin);
    std::vector<const Mark*> logged;
    for (const Mark& mark : step.marks)
      if (mark.kind == Mark::Kind::logged) logged.push_back(&mark);
    auto iteration = logged.begin();
    auto hold = step.holds.begin();
    places_.resize(step.tasks.size());
    for (std::uint32_t i = 0; i < step.tasks.size(); ++i) {
      if (iteration != logged.end() && first_of(kind, step, **iteration) == i)
        read_timers(step.tasks[i].micro_batch);
      for (; hold != step.holds.end() && hold->before <= i; ++hold) add(*hold, end(), placed);
      places_[i] = end();
      add(kind, step, i, placed, begin);
      if (iteration == logged.end() || (*iteration)->of != i) continue;
      mark_ = samples_(++iterations_) ? last_kernel_ : none;
      ++iteration;
    }
    for (; hold != step.holds.end(); ++hold) add(*hold, end(), placed);
    for (const Mark& mark : step.marks)
      all().marks.push_back({mark.kind, places_[mark.task], places_[mark.of]});
  }

  /// The first task of a logged iteration, or the wait of the host before it.
  static std::uint32_t first_of(const Job& kind, const Program& step, const Mark& logged) {
    if (logged.task == 0) return 0;
    const Task& before = step.tasks[logged.task - 1];
    const Deed& deed = kind.deed_of(before);
    const bool is_its_wait =
        before.stream == 0 && std::holds_alternative<Wait>(deed.action) && deed.origin == Origin{};
    return is_its_wait ? logged.task - 1 : logged.task;
  }

  void add(const Hold& hold, std::uint32_t before, const Placed& placed) {
    Hold added = hold;
    added.before = before;
    added.buffer = placed.numbers.buffers[hold.buffer];
    added.pool = placed.streams[hold.pool];
    all().holds.push_back(added);
  }

  void add(const Job& kind, const Program& step, std::uint32_t index, const Placed& placed,
           std::uint32_t begin) {
    Task task = step.tasks[index];
    const Action& action = kind.deed_of(task).action;
    const auto waits = step.waits_for(index);
    for (const std::uint32_t earlier : waits) all().after.push_back(places_[earlier]);
    // When the step was written by itself no kernel had been enqueued that it could wait for.
    const bool host_waits =
        task.stream == 0 && (std::holds_alternative<Wait>(action) || !waits.empty());
    const bool packs = waits.empty() && std::holds_alternative<Pack>(action);  // shards
    const bool ordered = communicator_of(action) != nobody || host_waits || packs;
    if (ordered && last_kernel_ != none && last_kernel_ < begin)
      all().after.push_back(last_kernel_);
    task.work = placed.works[task.work];
    task.deed = placed.deeds[task.deed];
    task.stream = placed.streams[task.stream];
    if (task.stream != 0 && !joined_.job.streams[task.stream].beside) last_kernel_ = end();
    add(task);
  }

  void add(Task task) {
    task.after_end = static_cast<std::uint32_t>(all().after.size());
    all().tasks.push_back(task);
  }

  /// DDP's logger reads its timers: the host waits for the last mark of the iteration before, if
  /// that one was sampled.
  void read_timers(std::int16_t micro_batch) {
    if (mark_ == none) return;
    joined_.timer_reads.push_back({joined_.begins.size() - 1, end()});
    Work wait;
    wait.operation = Operation::wait;
    all().after.push_back(mark_);
    add({.work = parts_.number_of(wait), .deed = read_, .micro_batch = micro_batch});
  }

  const std::function<bool(int)>& samples_;
  JoinedJobs joined_;
  Parts parts_;
  std::vector<Placed> placed_;         ///< [kind]
  std::vector<std::uint32_t> places_;  ///< [task of the step being appended] where it came to lie
  std::uint32_t read_ = 0;             ///< the deed of a read of timers
  std::uint32_t last_kernel_ = none;   ///< the task enqueued last on the compute stream
  int iterations_ = 0;                 ///< ended so far, as DDP's logger counts
  std::uint32_t mark_ = none;          ///< of an iteration whose timers are still to be read
};

}  // namespace

JoinedJobs join(std::span<const Job* const> kinds, std::span<const std::int32_t> sequence,
                const std::function<bool(int)>& samples) {
  if (sequence.empty()) throw std::invalid_argument("there are no steps to join");
  for (const Job* kind : kinds)
    if (kind->programs.size() != 1)
      throw std::invalid_argument("steps are joined of ranks that are all alike");
  return Joiner(kinds, sequence, samples).result();
}

}  // namespace ddpsim::program
