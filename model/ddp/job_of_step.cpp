#include "model/ddp/job_of_step.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "model/ddp/complete_gradients.hpp"
#include "model/ddp/hooked_bucket.hpp"
#include "model/ddp/job_memory.hpp"
#include "model/ddp/task_origin.hpp"

namespace ddpsim::program {
namespace {

constexpr std::int64_t number_size = 8;  ///< bytes of a row's number

/// One micro-batch of a schedule: which gradients and buckets are copied in it.
struct Copies {
  std::vector<bool> in, out;       ///< [parameter]
  std::vector<bool> concatenated;  ///< [bucket]
};

/// Where a schedule's tasks came to lie in a program, told one after the other: each at its place;
/// one that is left out, at those of the tasks that it waited for.
class Places {
 public:
  explicit Places(std::size_t tasks) {
    begins_.reserve(tasks + 1);
    places_.reserve(tasks);
  }

  void add(std::uint32_t place) {
    places_.push_back(place);
    begins_.push_back(static_cast<std::uint32_t>(places_.size()));
  }
  /// The last one is at this place too.
  void extend(std::uint32_t place) {
    places_.push_back(place);
    begins_.back() = static_cast<std::uint32_t>(places_.size());
  }
  void leave_out(const std::vector<std::uint32_t>& waited_for) {
    places_.insert(places_.end(), waited_for.begin(), waited_for.end());
    begins_.push_back(static_cast<std::uint32_t>(places_.size()));
  }
  std::span<const std::uint32_t> of(std::size_t task) const {
    return {places_.data() + begins_[task], begins_[task + 1] - begins_[task]};
  }

 private:
  std::vector<std::uint32_t> places_, begins_{0};
};

bool has_plugins(const Schedule& schedule) {
  return std::ranges::any_of(
      schedule.hooks, [](const UserHook& hook) { return hook.kind == UserHookKind::plugin; });
}

/// Does a comm hook update parameters while backward still computes?
bool updates_in_backward(const Schedule& schedule) {
  return std::ranges::any_of(schedule.buckets, [](const Bucket& bucket) {
    return std::ranges::any_of(
        bucket.steps, [](const CommStep& step) { return step.action == CommAction::update; });
  });
}

class Translator {
 public:
  Translator(const Schedule& schedule, const StepWorks& works)
      : schedule_(schedule), works_(works), ends_(schedule.tasks.size()) {}

  Job run() {
    job_.labels = {""};
    job_.works = schedule_.works;
    nothing_ = static_cast<std::uint32_t>(job_.works.size());
    job_.works.emplace_back();
    job_.passes = schedule_.passes;
    job_.seed = schedule_.hook_seed;
    for (const Bucket& bucket : schedule_.buckets)
      job_.groups.push_back({bucket.parameters, bucket.size});
    job_.state = schedule_.hook_state;
    for (const Bucket& bucket : schedule_.buckets)
      if (!job_.state.empty()) job_.state += fmt::format("; {}", fmt::join(bucket.parameters, " "));
    add_streams();
    note_copies();
    add_buffers();
    job_.own.deeds.reserve(schedule_.tasks.size() + 1);
    for (std::uint32_t t = 0; t < schedule_.tasks.size(); ++t) {
      const ddpsim::Task& task = schedule_.tasks[t];
      if (t == 0 || task.micro_batch != micro_batch_) begin_micro_batch(task.micro_batch);
      job_.own.deeds.push_back({action_of(t, task), labelled_origin(task)});
      if (task.step != nobody && task.operation == Operation::pack)
        if (const auto seed = hooked_[at(task.bucket)]->seed_beside(step_of(task)))
          extras_[t] = {*seed, stream_of(task)};
      if (has_plugins_) note_complete(task);
    }
    wait_ = static_cast<std::uint32_t>(job_.own.deeds.size());
    job_.own.deeds.push_back({Wait{}, {}});
    if (!extras_.empty()) {
      free_ = static_cast<std::uint32_t>(job_.works.size());
      Work& work = job_.works.emplace_back();
      work.operation = Operation::own_kernel;
      work.launches = 0;
    }
    for (auto& [task, extra] : extras_) {
      extra.deed = static_cast<std::uint32_t>(job_.own.deeds.size());
      job_.own.deeds.push_back({extra.action, {}});
    }
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(works_.parameters()); ++i)
      job_.gradients.push_back(gradient_now(i));
    add_programs();
    if (schedule_.background.size != Bytes{}) add_background();
    return std::move(job_);
  }

 private:
  /// Streams as a device has them: of those that communicate one for each queue of collectives. A
  /// hook's kernels halt the others, on whichever stream they stand.
  void add_streams() {
    for (const ddpsim::Work& work : schedule_.works)
      queues_ = std::max<std::uint8_t>(queues_, work.communicator + 1);
    const auto lanes = static_cast<std::uint8_t>(schedule_.collectives_at_once);
    for (const ddpsim::Stream stream : all_streams) {
      const bool communicates = stream == ddpsim::Stream::communication;
      const bool beside = stream != ddpsim::Stream::host && stream != ddpsim::Stream::compute;
      const bool halts = communicates || stream == ddpsim::Stream::aside;
      const std::string name(name_of(stream));
      for (int queue = 0; queue < (communicates ? queues_ : 1); ++queue)
        job_.streams.push_back({queue == 0 ? name : fmt::format("{} {}", name, queue), beside,
                                halts, communicates ? lanes : std::uint8_t{1}});
    }
  }

  std::uint8_t aside() const {
    return static_cast<std::uint8_t>(static_cast<int>(ddpsim::Stream::aside) + queues_ - 1);
  }

  std::uint8_t stream_of(const ddpsim::Task& task) const {
    int number = static_cast<int>(task.stream);
    if (task.stream == ddpsim::Stream::communication)
      number += schedule_.work_of(task).communicator;
    else if (task.stream > ddpsim::Stream::communication)
      number += queues_ - 1;
    return static_cast<std::uint8_t>(number);
  }

  /// A program for each rank that alone updates something, and for ranks without inputs; of all
  /// others one.
  void add_programs() {
    const int owners = different_ranks(schedule_, schedule_.ranks);
    std::map<std::pair<int, bool>, std::uint16_t> kinds;
    for (int rank = 0; rank < schedule_.ranks; ++rank) {
      const bool has_inputs = schedule_.has_inputs(rank);
      const auto [kind, is_new] =
          kinds.try_emplace({std::min(rank, owners - 1), has_inputs},
                            static_cast<std::uint16_t>(job_.programs.size()));
      job_.program_of.push_back(kind->second);
      if (is_new) job_.programs.push_back(program_of(rank, has_inputs));
    }
  }

  Program program_of(int rank, bool has_inputs) {
    Program program;
    program.rounds = schedule_.rounds;
    if (!has_inputs) clear_gradients(program);
    program.tasks.reserve(schedule_.tasks.size() + schedule_.tasks.size() / 8);
    program.after.reserve(schedule_.after.size());
    Places places(schedule_.tasks.size());
    std::vector<std::optional<std::uint32_t>> latest(job_.streams.size());  // that stands there
    std::vector<std::uint32_t> after;
    const auto add = [&](const Task& task) {
      program.after.insert(program.after.end(), after.begin(), after.end());
      program.tasks.push_back(task);
      program.tasks.back().after_end = static_cast<std::uint32_t>(program.after.size());
      after.clear();
    };
    for (std::uint32_t t = 0; t < schedule_.tasks.size(); ++t) {
      const ddpsim::Task& task = schedule_.tasks[t];
      const bool is_others = is_of_another_rank(task, rank);
      after.clear();
      if (is_others && task.operation == Operation::wait) {
        places.leave_out(after);
        continue;
      }
      for (const std::uint32_t earlier : schedule_.waits_for(task))
        for (const std::uint32_t place : places.of(earlier))
          if (std::ranges::find(after, place) == after.end()) after.push_back(place);
      const bool is_left_out =
          !has_inputs && task.step == nobody && traits_of(task.operation).needs_inputs;
      if (is_others || is_left_out) {
        // Who waited for it waits for what was before it in its stream, too.
        if (const auto& before = latest[stream_of(task)]) after.push_back(*before);
        places.leave_out(after);
        continue;
      }
      if (task.host_waits && task.stream != ddpsim::Stream::host)
        add({.work = nothing_, .deed = wait_, .micro_batch = task.micro_batch});
      const auto place = static_cast<std::uint32_t>(program.tasks.size());
      places.add(place);
      latest[stream_of(task)] = place;
      add({.work = task.work,
           .deed = t,
           .micro_batch = task.micro_batch,
           .stream = stream_of(task)});
      if (const auto extra = extras_.find(t); extra != extras_.end()) {
        after = {place};
        places.extend(static_cast<std::uint32_t>(program.tasks.size()));
        add({.work = free_,
             .deed = extra->second.deed,
             .micro_batch = task.micro_batch,
             .stream = extra->second.stream});
      }
      if (task.gradient != nobody)
        for (const std::uint32_t gradient : places.of(at(task.gradient)))
          program.marks.push_back({Mark::Kind::ready, place, gradient});
    }
    for (const LoggedIteration& each : schedule_.logged)
      if (const auto first = places.of(each.begin), last = places.of(each.end - 1);
          !first.empty() && !last.empty())
        program.marks.push_back({Mark::Kind::logged, first.front(), last.back()});
    return program;
  }

  /// All-reduces beside the step, on a stream and in a communicator of their own.
  void add_background() {
    const Schedule::Background& background = schedule_.background;
    Program& program = job_.beside.emplace();
    const auto stream = static_cast<std::uint8_t>(job_.streams.size());
    job_.streams.push_back({.name = "background", .beside = true});
    const auto add = [&](const Work& work, const Action& action) {
      program.tasks.push_back({.work = static_cast<std::uint32_t>(job_.works.size()),
                               .deed = static_cast<std::uint32_t>(job_.own.deeds.size()),
                               .stream = stream});
      job_.works.push_back(work);
      job_.own.deeds.push_back({action, {}});
    };
    if (background.pause > Duration::zero()) {
      Work pause;
      pause.operation = Operation::pause;
      pause.host = background.pause;
      add(pause, Pause{});
    }
    Work work;
    work.operation = Operation::all_reduce;
    work.payload = background.size;
    const Slice sent =
        memory_.add("background", nobody, Holds::note, DType::fp32,
                    std::max<std::int64_t>(1, background.size.count / 4), Life::step, Start::zeros);
    add(work, Collective{.reduction = Reduction::sum,
                         .communicator = communicator(queues_, 0),
                         .from = sent,
                         .to = sent});
  }

  /// What a rank without inputs sends is zeros.
  void clear_gradients(Program& program) {
    std::vector<Slice> cleared;
    for (const Slice& each : gradients_)
      if (each.buffer != no_buffer) cleared.push_back(each);
    cleared.insert(cleared.end(), buckets_.begin(), buckets_.end());
    for (const Slice& each : cleared) {
      job_.own.deeds.push_back({Fill{.to = each}, {}});
      program.tasks.push_back(
          {.work = nothing_, .deed = static_cast<std::uint32_t>(job_.own.deeds.size() - 1)});
    }
  }

  /// All ranks in groups of so many next to each other (0: all), in a queue of their own.
  std::int16_t communicator(std::uint8_t queue, std::int32_t size) {
    const auto [found, added] =
        communicators_.try_emplace({queue, size}, static_cast<std::int16_t>(communicators_.size()));
    if (!added) return found->second;
    Communicator& made = job_.communicators.emplace_back();
    made.name = (size == 0 ? "world" : fmt::format("groups of {}", size)) +
                (queue == 0 ? "" : fmt::format(" {}", queue));
    made.at_once = static_cast<std::uint8_t>(schedule_.collectives_at_once);
    const std::int32_t ranks = size == 0 ? schedule_.ranks : size;
    for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) {
      if (rank % ranks == 0) made.groups.emplace_back();
      made.groups.back().push_back(rank);
    }
    return found->second;
  }

  void note_copies() {
    for (const ddpsim::Task& task : schedule_.tasks) {
      while (copies_.size() <= at(task.micro_batch))
        copies_.push_back({std::vector<bool>(works_.parameters(), false),
                           std::vector<bool>(works_.parameters(), false),
                           std::vector<bool>(schedule_.buckets.size(), false)});
      Copies& copies = copies_[at(task.micro_batch)];
      if (task.operation == Operation::copy_in) copies.in[at(task.parameter)] = true;
      if (task.operation == Operation::copy_out && task.parameter != nobody)
        copies.out[at(task.parameter)] = true;
      if (task.operation == Operation::concatenate && task.bucket != nobody)
        copies.concatenated[at(task.bucket)] = true;
    }
  }

  // --- Memory ------------------------------------------------------------------------------------

  static DType type_of(const GradientInfo& gradient) { return stored_type(gradient.dtype); }
  std::int64_t elements_of(std::int32_t parameter) const {
    const GradientInfo& gradient = works_.gradients[at(parameter)];
    return gradient.size.count / size_of(type_of(gradient)).count;
  }

  void add_buffers() {
    state_ =
        memory_.add("state", nobody, Holds::optimizer, DType::fp32, 1, Life::job, Start::zeros);
    const auto parameters = static_cast<std::int32_t>(works_.parameters());
    job_.buffers.reserve(4 * works_.parameters() + schedule_.buckets.size() + 8);
    for (std::int32_t i = 0; i < parameters; ++i) {
      const DType type = type_of(works_.gradients[at(i)]);
      const std::int64_t elements = elements_of(i);
      weights_.push_back(
          memory_.add("w", i, Holds::parameter, type, elements, Life::job, Start::parameters));
    }
    gradients_.resize(works_.parameters());
    fresh_.resize(works_.parameters());
    where_.resize(works_.parameters());
    slots_.resize(works_.parameters());
    bucket_of_.assign(works_.parameters(), nobody);
    for (std::int32_t b = 0; b < static_cast<std::int32_t>(schedule_.buckets.size()); ++b)
      add_bucket(b);
    for (std::int32_t i = 0; i < parameters; ++i)
      if (is_view_from_the_start(i)) where_[at(i)] = slots_[at(i)];
    module_buffers_.resize(works_.buffers.size());
    flat_buffers_.resize(works_.buffers.size());
  }

  // What not every step has comes where it is first used.

  const Slice& gradient_memory(std::vector<Slice>& of, const char* name, std::int32_t parameter) {
    Slice& slice = of[at(parameter)];
    if (slice.buffer == no_buffer)
      slice = memory_.add(name, parameter, Holds::gradient,
                          type_of(works_.gradients[at(parameter)]), elements_of(parameter),
                          Life::step, is_sparse(parameter) ? Start::zeros : Start::undefined);
    return slice;
  }
  const Slice& gradient(std::int32_t parameter) {
    return gradient_memory(gradients_, "g", parameter);
  }
  bool is_sparse(std::int32_t parameter) const { return works_.gradients[at(parameter)].sparse; }
  /// The rows of a sparse gradient that are not zero on this rank, as they are sent: their numbers,
  /// and themselves; and those of all ranks.
  struct Rows {
    Slice numbers, values, all_numbers, all_values;
  };
  const Rows& rows_of(std::int32_t parameter) {
    const auto [found, is_new] = rows_.try_emplace(parameter);
    Rows& rows = found->second;
    if (!is_new) return rows;
    const StepWorks::SparseSizes& sizes = works_.sparse[at(parameter)];
    const auto add = [&](const char* name, Bytes size) {
      return memory_.bytes(name, parameter, Holds::gradient, size, Life::step, Start::zeros);
    };
    const auto add_values = [&](const char* name, Bytes size) {
      const DType type = type_of(works_.gradients[at(parameter)]);
      return memory_.add(name, parameter, Holds::gradient, type, size.count / size_of(type).count,
                         Life::step, Start::zeros);
    };
    rows.numbers = add("rows", sizes.indices);
    rows.values = add_values("values of rows", sizes.values);
    rows.all_numbers = add("all rows", schedule_.ranks * sizes.indices);
    rows.all_values = add_values("values of all rows", schedule_.ranks * sizes.values);
    return rows;
  }
  /// The gradient of a later micro-batch, until it is added to `.grad`.
  const Slice& fresh(std::int32_t parameter) { return gradient_memory(fresh_, "fresh", parameter); }
  /// Where `.grad` lies.
  const Slice& where(std::int32_t parameter) {
    if (where_[at(parameter)].buffer == no_buffer) where_[at(parameter)] = gradient(parameter);
    return where_[at(parameter)];
  }
  const Slice& module_buffers(std::int32_t group) {
    Slice& slice = module_buffers_[at(group)];
    if (slice.buffer == no_buffer)
      slice = memory_.bytes("buffers", group, Holds::module_buffer, works_.buffers[at(group)].size,
                            Life::job, Start::zeros);
    return slice;
  }
  const Slice& flat_buffers(std::int32_t group) {
    Slice& slice = flat_buffers_[at(group)];
    if (slice.buffer == no_buffer)
      slice = memory_.bytes("flat", group, Holds::module_buffer, works_.buffers[at(group)].size);
    return slice;
  }
  /// All parameters, one behind the other.
  const Slice& model() {
    if (model_.buffer != no_buffer) return model_;
    const DType type = type_of(works_.gradients.front());
    std::int64_t elements = 0;
    bool mixed = false;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(works_.parameters()); ++i) {
      mixed = mixed || type_of(works_.gradients[at(i)]) != type;
      elements += elements_of(i);
    }
    model_ = mixed ? memory_.bytes("model", nobody, Holds::parameter, works_.gradient_size)
                   : memory_.add("model", nobody, Holds::parameter, type, elements);
    return model_;
  }

  /// A bucket of gradients of several types is told in bytes, or, for a comm hook, in elements of
  /// the first one's type, as which the hook takes them.
  void add_bucket(std::int32_t index) {
    const Bucket& bucket = schedule_.buckets[at(index)];
    for (const std::int32_t each : bucket.parameters) bucket_of_[at(each)] = index;
    hooked_.emplace_back();
    if (bucket.in_place || bucket.sparse) {
      buckets_.push_back(gradient(bucket.parameters.front()));
      slots_[at(bucket.parameters.front())] = buckets_.back();
      return;
    }
    const DType first = type_of(works_.gradients[at(bucket.parameters.front())]);
    const bool mixed = std::ranges::any_of(bucket.parameters, [&](std::int32_t each) {
      return type_of(works_.gradients[at(each)]) != first;
    });
    const bool in_bytes = mixed && bucket.steps.empty();
    const DType type = in_bytes ? DType::fp8_e4m3 : first;
    std::int64_t elements = 0;
    std::vector<Slice> slots;
    for (const std::int32_t each : bucket.parameters) {
      const std::int64_t count =
          in_bytes ? works_.gradients[at(each)].size.count : elements_of(each);
      slots.push_back({no_buffer, nowhere, elements, count});
      elements += count;
    }
    buckets_.push_back(memory_.add("b", index, Holds::bucket, type, elements));
    for (std::size_t i = 0; i < slots.size(); ++i) {
      slots[i].buffer = buckets_.back().buffer;
      slots_[at(bucket.parameters[i])] = slots[i];
    }
    if (bucket.steps.empty()) return;
    const Slice parameters = parameters_of(bucket, index, type);
    hooked_.back().emplace(memory_, bucket, index, buckets_.back(), std::move(slots), parameters,
                           schedule_.ranks);
    hooked_.back()->set_group(schedule_.ranks, communicator(0, 0));
    for (const CommStep& step : bucket.steps) {
      if (step.action == CommAction::update) hooked_.back()->set_update(update_of(bucket));
      if (step.divisor > 1)
        hooked_.back()->set_group(step.divisor, communicator(0, group_of(step.divisor)));
    }
  }

  /// The parameters of a bucket that its hook updates or sends lie in one piece.
  Slice parameters_of(const Bucket& bucket, std::int32_t index, DType type) {
    const bool in_one_piece = std::ranges::any_of(
        bucket.steps, [](const CommStep& step) { return step.action == CommAction::update; });
    if (!in_one_piece) return {};
    const Slice whole = memory_.add("weights", index, Holds::parameter, type, buckets_.back().count,
                                    Life::job, Start::zeros);
    for (const std::int32_t each : bucket.parameters) {
      Slice& inside = job_.buffers[weights_[at(each)].buffer].inside;
      inside = slots_[at(each)];
      inside.buffer = whole.buffer;
    }
    return whole;
  }

  /// The ranks that a sum is divided by, as a size of groups next to each other; 0: all.
  std::int32_t group_of(int divisor) const {
    const int ranks = std::min(std::max(1, divisor), schedule_.ranks);
    return ranks == schedule_.ranks ? 0 : ranks;
  }

  /// The optimizer's step for the parameters of one bucket, with the gradients in it.
  Update update_of(const Bucket& bucket) {
    std::vector<Slice> parameters, gradients;
    for (const std::int32_t each : bucket.parameters) {
      parameters.push_back(weights_[at(each)]);
      gradients.push_back(slots_[at(each)]);
    }
    return update(bucket.parameters, parameters, gradients);
  }

  Update update(const std::vector<std::int32_t>& which, const std::vector<Slice>& parameters,
                const std::vector<Slice>& gradients) {
    std::vector<Slice> state;
    for (const std::int32_t each : which)
      for (std::size_t k = 0; k < state_slices(works_.updates); ++k)
        state.push_back(kept_by_optimizer(each, k));
    if (state.empty()) state.push_back(state_);
    const Operands updated = memory_.list(parameters), by = memory_.list(gradients);
    return {.optimizer = runs_on_ranks(works_.updates) ? works_.updates : Optimizer::none,
            .parameters = updated,
            .gradients = by,
            .state = memory_.list(state)};
  }

  Slice kept_by_optimizer(std::int32_t parameter, std::size_t which) {
    std::vector<Slice>& kept = kept_[which];
    kept.resize(works_.parameters());
    Slice& slice = kept[at(parameter)];
    if (slice.buffer == no_buffer)
      slice = memory_.add(which == 0 ? "momentum" : "variance", parameter, Holds::optimizer,
                          type_of(works_.gradients[at(parameter)]), elements_of(parameter),
                          Life::job, Start::zeros);
    return slice;
  }

  /// Does `.grad` lie in its bucket before anything communicates? Then it is never copied there.
  bool is_view_from_the_start(std::int32_t parameter) const {
    const std::int32_t index = bucket_of_[at(parameter)];
    if (index == nobody) return false;  // nothing is communicated
    const Bucket& bucket = schedule_.buckets[at(index)];
    if (bucket.in_place || bucket.sparse) return false;
    return std::ranges::none_of(copies_, [&](const Copies& copies) {
      return copies.in[at(parameter)] || copies.concatenated[at(index)];
    });
  }

  bool is_unused(std::int32_t parameter) const { return works_.gradients[at(parameter)].unused; }

  /// What was put in a bucket in the micro-batch before, and not copied back, lies there from now
  /// on.
  void begin_micro_batch(std::int16_t micro_batch) {
    for (std::size_t i = 0; i < where_.size(); ++i)
      if (sent_[i]) where_[i] = slots_[i];
    sent_.assign(sent_.size(), false);
    micro_batch_ = micro_batch;
    if (has_plugins_) list_gradients();
  }

  // --- What the user's code may read -------------------------------------------------------------

  /// The gradients of this micro-batch in the order in which they become complete.
  void list_gradients() {
    std::vector<Slice> gradients;
    for (const ddpsim::Task& task : schedule_.tasks)
      if (task.operation == Operation::backward && task.micro_batch == micro_batch_)
        for (const std::int32_t each : completed_by(task)) gradients.push_back(computed(each));
    complete_ = CompleteGradients(memory_, gradients);
  }

  const std::vector<std::int32_t>& completed_by(const ddpsim::Task& backward) const {
    return works_.layers[at(backward.layer)].completes[at(backward.kernel)];
  }

  /// A backward kernel completes gradients, and what is sent where it lies is not to be read. Later
  /// micro-batches compute theirs elsewhere.
  void note_complete(const ddpsim::Task& task) {
    if (task.operation == Operation::backward) complete_.add(completed_by(task).size());
    const bool sends =
        task.bucket != nobody && (is_collective(task.operation) || task.step != nobody);
    if (!sends || micro_batch_ > 0) return;
    for (const std::int32_t each : schedule_.buckets[at(task.bucket)].parameters)
      if (where_[at(each)] == slots_[at(each)]) complete_.take(slots_[at(each)]);
  }

  /// Where the gradient of this micro-batch is computed.
  const Slice& computed(std::int32_t parameter) {
    return micro_batch_ == 0 ? where(parameter) : fresh(parameter);
  }

  // --- Actions -----------------------------------------------------------------------------------

  Action action_of(std::uint32_t index, const ddpsim::Task& task) {
    const bool is_hooks = task.step != nobody && task.operation != Operation::wait;
    if (is_hooks && task.operation != Operation::pause && !is_collective(task.operation))
      return hooked(task).action_of(step_of(task));
    switch (task.operation) {
      case Operation::forward:
        return forward(task);
      case Operation::backward:
        return backward(task);
      case Operation::accumulate: {
        const Slice sum = where(task.parameter);
        return Combine{.to = sum, .left = sum, .right = fresh(task.parameter)};
      }
      case Operation::hook:
        return Call{.what = Call::What::hook, .index = task.parameter};
      case Operation::search_unused:
        return Call{.what = Call::What::search};
      case Operation::outside:
        return Call{.what = Call::What::outside};
      case Operation::copy_in:
        return copy_in(task);
      case Operation::concatenate:
        return concatenate(task);
      case Operation::divide:
        return divide(task);
      case Operation::copy_out:
        return copy_out(task);
      case Operation::wait:
        return waits_for_model(index) ? put_back_model() : Wait{};
      case Operation::all_reduce:
      case Operation::all_gather:
      case Operation::reduce_scatter:
      case Operation::broadcast:
        return collective(index, task);
      case Operation::copy_to_host:
        return to_host(index);
      case Operation::copy_to_device:
        return to_device(index, task);
      case Operation::optimizer:
        return optimizer(task);
      case Operation::gradient_hook:
        return gradient_hook(task);
      case Operation::module_hook:
        return module_hook(task);
      case Operation::meet:
        return Meet{};
      case Operation::pause:  // in the place of a hook's collective
        hooked(task);
        return Pause{};
      case Operation::cast:
      case Operation::correct:
      case Operation::pack:
      case Operation::draw:
      case Operation::multiply:
      case Operation::orthogonalize:
      case Operation::quantize:
      case Operation::dequantize:
      case Operation::select:
      case Operation::own_kernel:
      case Operation::synchronize:
      case Operation::all_to_all:
      case Operation::send_receive:
        break;
    }
    throw std::logic_error(
        fmt::format("{} is no part of a step as it was built", name_of(task.operation)));
  }

  Origin labelled_origin(const ddpsim::Task& task) {
    Origin origin = origin_of(schedule_, task);
    if (const CommStep* step = program::step_of(schedule_, task);
        step != nullptr && task.operation != Operation::wait) {
      std::int16_t& label = labels_[at(static_cast<int>(step->action))];
      if (label == 0) label = memory_.label(name_of(step->action));
      origin.label = label;
    }
    return origin;
  }

  const CommStep& step_of(const ddpsim::Task& task) const {
    return *program::step_of(schedule_, task);
  }
  HookedBucket& hooked(const ddpsim::Task& task) {
    HookedBucket& bucket = *hooked_[at(task.bucket)];
    if (task.step == 0) bucket.begin();
    return bucket;
  }

  /// Another one for each kernel and operand.
  static std::uint32_t seed_of(const ddpsim::Task& task) {
    const std::int32_t backward = task.operation == Operation::backward ? 4 : 0;
    return static_cast<std::uint32_t>((task.layer * 64 + task.kernel) * 8 + 1 + backward);
  }

  Action forward(const ddpsim::Task& task) {
    const StepWorks::LayerWorks& layer = works_.layers[at(task.layer)];
    return Compute{.seed = seed_of(task),
                   .layout = Layout::right_transposed,
                   .motion = motion_of(layer.rows_forward, task),
                   .weight = read_weight(layer.weights.forward, task)};
  }

  Action backward(const ddpsim::Task& task) {
    const StepWorks::LayerWorks& layer = works_.layers[at(task.layer)];
    const GradientBinding& gradients = layer.gradients[at(task.kernel)];
    std::vector<Slice> fills;
    for (const std::int32_t each : gradients.fills) fills.push_back(computed(each));
    Compute made{.seed = seed_of(task),
                 .motion = motion_of(layer.rows_backward, task),
                 .weight = read_weight(layer.weights.backward, task)};
    if (gradients.result != nobody) {
      made.layout = Layout::left_transposed;
      made.result = computed(gradients.result);
    }
    made.fills = memory_.list(fills);
    if (std::ranges::any_of(gradients.fills, [this](std::int32_t i) { return is_sparse(i); }))
      made.rows = rows_filled(gradients.fills);
    return made;
  }

  static Motion motion_of(const std::vector<bool>& reduces_rows, const ddpsim::Task& task) {
    return reduces_rows[at(task.kernel)] ? Motion::rows : Motion::elements;
  }

  Operands rows_filled(const std::vector<std::int32_t>& parameters) {
    std::vector<Slice> rows;
    for (const std::int32_t each : parameters) {
      rows.push_back(is_sparse(each) ? rows_of(each).numbers : Slice{});
      rows.push_back(is_sparse(each) ? first_row(each) : Slice{});
    }
    return memory_.list(rows);
  }

  Slice first_row(std::int32_t parameter) {
    const std::int64_t rows = rows_of(parameter).numbers.count / number_size;
    Slice row = computed(parameter);
    row.count = rows_of(parameter).values.count / rows;
    return row;
  }

  /// None where a comm hook may be writing the parameters meanwhile.
  Slice read_weight(const std::vector<std::int32_t>& weights, const ddpsim::Task& task) const {
    const std::int32_t weight = weights[at(task.kernel)];
    return weight == nobody || updates_in_backward_ ? Slice{} : weights_[at(weight)];
  }

  Action copy_in(const ddpsim::Task& task) {
    const Slice& slot = slots_[at(task.parameter)];
    if (is_unused(task.parameter)) return Fill{slot};
    sent_[at(task.parameter)] = true;
    return Scale{
        .to = slot, .from = where(task.parameter), .factor = 1 / static_cast<float>(task.divisor)};
  }

  Action concatenate(const ddpsim::Task& task) {
    std::vector<Slice> from, to;
    if (is_of_model(task)) {
      for (const Slice& each : weights_) from.push_back(each);
      to = {model()};
    } else if (task.bucket == nobody) {
      from = {module_buffers(task.kernel)};
      to = {flat_buffers(task.kernel)};
    } else {
      for (const std::int32_t each : schedule_.buckets[at(task.bucket)].parameters) {
        if (is_unused(each)) continue;
        from.push_back(where(each));
        to.push_back(slots_[at(each)]);
        sent_[at(each)] = true;
      }
    }
    const Operands written = memory_.list(to);
    return Pack{.to = written, .from = memory_.list(from)};
  }

  /// Is it the last wait for the average of models? (Hosts wait for copies before.)
  bool waits_for_model(std::uint32_t index) const {
    const auto waits = [&](const ddpsim::Task& task) {
      return task.operation == Operation::wait && is_of_model(task);
    };
    const auto& tasks = schedule_.tasks;
    return waits(tasks[index]) && std::none_of(tasks.begin() + index + 1, tasks.end(), waits);
  }

  /// Once the average of all ranks' parameters is there, it takes their place.
  Action put_back_model() {
    const Operands to = memory_.list(weights_);
    return Pack{.to = to, .from = memory_.list({model()})};
  }

  Action divide(const ddpsim::Task& task) {
    const float factor = 1 / static_cast<float>(task.divisor);
    if (task.bucket != nobody && schedule_.buckets[at(task.bucket)].sparse) {
      const Rows& rows = rows_of(task.parameter);
      return TakeRows{
          .to = rows.values, .rows = rows.numbers, .from = where(task.parameter), .factor = factor};
    }
    const Slice what = is_of_model(task)          ? model()
                       : task.parameter == nobody ? buckets_[at(task.bucket)]
                                                  : slots_[at(task.parameter)];
    return Scale{.to = what, .from = what, .factor = factor};
  }

  Action copy_out(const ddpsim::Task& task) {
    if (task.bucket == nobody) {
      const Operands written = memory_.list({module_buffers(task.kernel)});
      return Pack{.to = written, .from = memory_.list({flat_buffers(task.kernel)})};
    }
    where_[at(task.parameter)] = gradient(task.parameter);
    sent_[at(task.parameter)] = false;
    return Scale{.to = gradient(task.parameter), .from = slots_[at(task.parameter)]};
  }

  /// All parameters, as a wrapper that averages models has them.
  bool is_of_model(const ddpsim::Task& task) const {
    return task.bucket == nobody && schedule_.work_of(task).message == Message::parameters;
  }

  using Ends = HookedBucket::Ends;

  /// The memory that the collective works on, on the device: a bucket, a hook's, buffers, or what
  /// is announced, which is memory of its own.
  const Ends& ends_of(std::uint32_t index, const ddpsim::Task& task) {
    std::optional<Ends>& ends = ends_[index];
    if (!ends) ends = new_ends_of(index, task);
    return *ends;
  }

  Ends new_ends_of(std::uint32_t index, const ddpsim::Task& task) {
    if (task.step != nobody) return hooked(task).ends_of(step_of(task));
    const Work& work = schedule_.work_of(task);
    if (is_of_model(task)) return {model(), model()};
    if (work.message == Message::buffers)
      return {flat_buffers(task.kernel), flat_buffers(task.kernel)};
    if (work.message == Message::sparse_indices || work.message == Message::sparse_values) {
      const Rows& rows = rows_of(schedule_.buckets[at(task.bucket)].parameters.front());
      if (work.message == Message::sparse_indices) return {rows.numbers, rows.all_numbers};
      return {rows.values, rows.all_values};
    }
    if (task.bucket != nobody && work.message != Message::sparse_shape)
      return {buckets_[at(task.bucket)], buckets_[at(task.bucket)]};
    const Bytes size = work.payload;
    Ends ends;
    ends.from = ends.to = note(index, size);
    if (task.operation == Operation::all_gather) ends.to = note(index, schedule_.ranks * size);
    if (task.operation == Operation::reduce_scatter)
      ends.to = note(index, Bytes{size.count / schedule_.ranks});
    return ends;
  }

  Action collective(std::uint32_t index, const ddpsim::Task& task) {
    const Work& work = schedule_.work_of(task);
    const Ends& ends = ends_of(index, task);
    Collective made =
        task.step == nobody ? plain_collective(task) : HookedBucket::collective_of(step_of(task));
    made.communicator = communicator(work.communicator, work.group);
    made.root = static_cast<std::int16_t>(std::max(task.owner, 0));
    made.from = ends.from;
    made.to = ends.to;
    // Parts of ranks, which the data may not have alike.
    const bool in_parts = made.what == Collectives::reduce_scatter ||
                          (made.what == Collectives::all_gather && made.from == made.to &&
                           made.reduction == Reduction::none);
    if (!in_parts && task.operation == Operation::reduce_scatter && task.step == nobody)
      made.counts = ends.from;
    if (task.bucket != nobody && task.step == nobody)
      made.unawaited = schedule_.buckets[at(task.bucket)].delayed;
    move_to_host(task, made);
    if (work.message == Message::sparse_values && made.to == ends.to) add_rows(index, task.bucket);
    return made;
  }

  /// Behind this task the rows of all ranks are there, and are added up.
  void add_rows(std::uint32_t index, std::int32_t bucket) {
    const std::int32_t parameter = schedule_.buckets[at(bucket)].parameters.front();
    const Rows& rows = rows_of(parameter);
    extras_[index] = {
        AddRows{.to = where(parameter), .rows = rows.all_numbers, .from = rows.all_values},
        aside()};
  }

  static Collective plain_collective(const ddpsim::Task& task) {
    Collective made;
    switch (ddpsim::collective_of(task.operation)) {
      case CollectiveOperation::all_reduce:
        made.reduction = task.divisor == 1 ? Reduction::sum : Reduction::mean;
        return made;
      case CollectiveOperation::all_gather:
        made.what = Collectives::all_gather;
        return made;
      case CollectiveOperation::reduce_scatter:
        made.what = Collectives::reduce_scatter;
        made.reduction = Reduction::sum;
        return made;
      case CollectiveOperation::broadcast:
        made.what = Collectives::broadcast;
        return made;
    }
    return made;
  }

  Slice note(std::uint32_t index, Bytes size) {
    const auto number = static_cast<std::int32_t>(index);
    if (size.count % 4 == 0)
      return memory_.add("note", number, Holds::note, DType::fp32, size.count / 4, Life::step,
                         Start::zeros);
    return memory_.bytes("note", number, Holds::note, size, Life::step, Start::zeros);
  }

  Slice on_host(const Slice& device, std::uint32_t index) {
    const Buffer buffer = job_.buffers[device.buffer];
    const Slice host = memory_.add("host", static_cast<std::int32_t>(index), buffer.holds,
                                   buffer.type, device.count);
    job_.buffers.back().place = Place::host;
    return host;
  }

  /// Where its input was copied to the host it works there.
  void move_to_host(const ddpsim::Task& task, Collective& made) {
    for (const std::uint32_t earlier : schedule_.waits_for(task))
      if (schedule_.tasks[earlier].operation == Operation::copy_to_host) {
        const bool in_place = made.from == made.to;
        made.from = std::get<Move>(job_.own.deeds[earlier].action).to;
        made.to = in_place ? made.from : on_host(made.to, earlier);
        return;
      }
  }

  /// The input of the collective that waits for it.
  Action to_host(std::uint32_t index) {
    std::uint32_t user = index + 1;
    while (!waits_for(schedule_.tasks[user], index)) ++user;
    const Slice device = ends_of(user, schedule_.tasks[user]).from;
    return Move{.to = on_host(device, index), .from = device};
  }

  Action to_device(std::uint32_t index, const ddpsim::Task& task) {
    const std::uint32_t sent = schedule_.waits_for(task).front();
    if (schedule_.work_of(schedule_.tasks[sent]).message == Message::sparse_values)
      add_rows(index, schedule_.tasks[sent].bucket);
    const auto& collective = std::get<Collective>(job_.own.deeds[sent].action);
    return Move{.to = ends_[sent]->to, .from = collective.to, .unawaited = collective.unawaited};
  }

  bool waits_for(const ddpsim::Task& task, std::uint32_t earlier) const {
    const auto all = schedule_.waits_for(task);
    return std::ranges::find(all, earlier) != all.end();
  }

  /// The first kernel of one that goes over all tensors stands for the whole of it.
  Action optimizer(const ddpsim::Task& task) {
    const bool each_alone =
        works_.updates == Optimizer::adamw_loop && works_.optimizer.size() == works_.parameters();
    if (task.kernel != 0 && !each_alone) return Touch{};
    std::vector<std::int32_t> which;
    std::vector<Slice> parameters, gradients;
    const std::int32_t first = each_alone ? task.kernel : 0,
                       end = each_alone ? first + 1 : static_cast<std::int32_t>(where_.size());
    for (std::int32_t i = first; i < end; ++i) {
      if (is_unused(i)) continue;
      which.push_back(i);
      parameters.push_back(weights_[at(i)]);
      gradients.push_back(gradient_now(i));
    }
    if (which.empty()) return Touch{};
    return update(which, parameters, gradients);
  }

  /// Where the gradient is that the optimizer would take now.
  Slice gradient_now(std::int32_t parameter) {
    return sent_[at(parameter)] ? slots_[at(parameter)] : where(parameter);
  }

  /// On the host's threads; of a GPU's output they are two copies, there and back, besides.
  Action module_hook(const ddpsim::Task& task) const {
    if (task.stream != ddpsim::Stream::host && !schedule_.synchronous) return Touch{};
    const UserHook& hook = schedule_.hooks[at(task.user_hook)];
    return Chunked{.pieces = hook.chunks.count,
                   .threads = hook.chunks.threads,
                   .output = hook.outputs[at(task.kernel)],
                   .time = hook.chunks.time};
  }

  Action gradient_hook(const ddpsim::Task& task) {
    const UserHook& hook = schedule_.hooks[at(task.user_hook)];
    std::vector<Slice> group;
    for (const std::int32_t each : hook.groups[at(task.kernel)])
      if (!is_unused(each)) group.push_back(computed(each));
    const Slice& first = computed(task.parameter);
    switch (hook.kind) {
      case UserHookKind::clip:
        return Clip{.gradients = memory_.list(group), .norm = hook.value};
      case UserHookKind::scale:
        return Scale{.to = first, .from = first, .factor = static_cast<float>(hook.value)};
      case UserHookKind::noise:
        return Noise{.to = first,
                     .from = first,
                     .deviation = hook.value,
                     .seed = hook.seed_of(task.parameter)};
      case UserHookKind::decay:
        return Combine{.to = first,
                       .left = first,
                       .right = weights_[at(task.parameter)],
                       .b = static_cast<float>(hook.value)};
      case UserHookKind::record:
        return Call{.what = Call::What::user, .index = task.user_hook};
      case UserHookKind::plugin:
        return Plugin{.code = memory_.label(hook.plugin),
                      .parameter = task.parameter,
                      .weight = weights_[at(task.parameter)],
                      .complete = complete_.listed(),
                      .reads = complete_.readable(memory_),
                      .writes = memory_.list({first})};
      case UserHookKind::chunks:
        break;
    }
    throw std::logic_error("a hook on layers is none on gradients");
  }

  const Schedule& schedule_;
  const StepWorks& works_;
  JobMemory memory_;
  std::array<std::int16_t, comm_action_count> labels_{};  ///< [CommAction]; 0: it has none yet
  Job& job_ = memory_.job;
  std::map<std::pair<std::uint8_t, std::int32_t>, std::int16_t> communicators_;
  std::uint8_t queues_ = 1;     ///< of collectives
  std::uint32_t nothing_ = 0;   ///< work that takes no time
  std::uint32_t free_ = 0;      ///< and of extras, which nobody prices
  std::uint32_t wait_ = 0;      ///< deed of a host that waits
  std::vector<Copies> copies_;  ///< [micro-batch]
  std::int16_t micro_batch_ = 0;
  bool updates_in_backward_ = updates_in_backward(schedule_);
  bool has_plugins_ = has_plugins(schedule_);
  CompleteGradients complete_;

  // [parameter]
  std::vector<Slice> weights_, gradients_, fresh_;
  std::vector<std::int32_t> bucket_of_;  ///< nobody: it is in none
  std::vector<Slice> slots_;             ///< its place in its bucket; in place: `.grad` itself
  std::vector<Slice> where_;             ///< `.grad`
  std::vector<bool> sent_ = std::vector<bool>(works_.parameters(), false);  ///< in this micro-batch

  std::array<std::vector<Slice>, 2> kept_;  ///< by the optimizer, of each parameter

  std::vector<Slice> buckets_;
  std::vector<Slice> module_buffers_, flat_buffers_;  ///< [group]
  Slice state_, model_;
  std::map<std::int32_t, Rows> rows_;  ///< of sparse gradients, by parameter
  /// What schedules have no task for, for it takes no time in a prediction.
  struct Extra {
    Action action;
    std::uint8_t stream = 0;
    std::uint32_t deed = 0;
  };
  std::map<std::uint32_t, Extra> extras_;            ///< by the task that they come behind
  std::vector<std::optional<HookedBucket>> hooked_;  ///< [bucket]
  std::vector<std::optional<Ends>> ends_;            ///< [collective] on the device
};

}  // namespace

Job job_of(const Schedule& schedule, const StepWorks& works) {
  return Translator(schedule, works).run();
}

}  // namespace ddpsim::program
