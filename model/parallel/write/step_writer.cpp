#include "model/parallel/write/step_writer.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>

#include <fmt/format.h>

namespace ddpsim {
namespace {

program::Purpose purpose_of(Message message) {
  switch (message) {
    case Message::gradients:
    case Message::sparse_shape:
    case Message::sparse_indices:
    case Message::sparse_values:
      break;
    case Message::buffers:
      return program::Purpose::buffers;
    case Message::parameters:
      return program::Purpose::parameters;
    case Message::own:
      return program::Purpose::network;
    case Message::bucket_indices:
    case Message::bucket_lengths:
    case Message::used_map:
    case Message::active_ranks:
    case Message::early_end:
    case Message::buffer_source:
    case Message::will_sync:
    case Message::norm:
      return program::Purpose::note;
  }
  return program::Purpose::gradients;
}

/// Where the tasks that were written came to lie in a program, told one after the other: each at
/// its place; one that is left out, at those of the tasks that it waited for.
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

}  // namespace

std::string_view name_of(StepStream stream) {
  switch (stream) {
    case StepStream::host:
      return "host";
    case StepStream::compute:
      return "compute";
    case StepStream::communication:
      return "communication";
    case StepStream::aside:
      return "aside";
    case StepStream::to_host:
      return "to host";
    case StepStream::to_device:
      return "to device";
    case StepStream::copy_in:
      return "copy in";
    case StepStream::gather:
      return "gather";
    case StepStream::scatter:
      return "scatter";
    case StepStream::replicate:
      return "replicate";
  }
  return "?";
}

/// The programs of a step that has been written: one for each rank that alone does something, and
/// for ranks without inputs; of all others one.
class StepWriter::Layout {
 public:
  Layout(StepWriter& writer, const std::vector<program::Slice>& cleared)
      : writer_(writer), job_(writer.memory.job), cleared_(cleared) {}

  void add_programs(int without_inputs) {
    const int ranks = writer_.device.ranks, different = writer_.different_ranks();
    std::map<std::pair<int, bool>, std::uint16_t> kinds;
    for (int rank = 0; rank < ranks; ++rank) {
      const bool has_inputs = rank < ranks - without_inputs;
      const auto [kind, is_new] =
          kinds.try_emplace({std::min(rank, different - 1), has_inputs},
                            static_cast<std::uint16_t>(job_.programs.size()));
      job_.program_of.push_back(kind->second);
      if (is_new) job_.programs.push_back(program_of(rank, has_inputs));
    }
  }

 private:
  program::Program program_of(int rank, bool has_inputs) {
    const std::vector<Written>& tasks = writer_.tasks_;
    program::Program program;
    program.tasks.reserve(tasks.size() + tasks.size() / 8);
    program.after.reserve(writer_.after_.size());
    if (!has_inputs) clear(program);
    Places places(tasks.size());
    std::vector<std::optional<std::uint32_t>> latest(job_.streams.size());  // that stands there
    std::vector<std::uint32_t> after;
    std::uint32_t begin = 0;
    auto hold = writer_.holds_.begin();
    const auto add_holds = [&](std::uint32_t before) {
      for (; hold != writer_.holds_.end() && hold->before <= before; ++hold)
        program.holds.push_back({.before = static_cast<std::uint32_t>(program.tasks.size()),
                                 .buffer = hold->buffer,
                                 .pool = number_of(hold->pool, 0),
                                 .begins = hold->begins});
    };
    for (std::uint32_t t = 0; t < tasks.size(); ++t) {
      add_holds(t);
      const Written& task = tasks[t];
      const std::uint8_t stream = stream_of(task);
      const std::span waits_for{writer_.after_.data() + begin, task.after_end - begin};
      begin = task.after_end;
      after.clear();
      const bool is_mine = writer_.is_done_by(task, rank);
      if (!is_mine && std::holds_alternative<program::Wait>(job_.own.deeds[t].action)) {
        places.leave_out(after);
        continue;
      }
      for (const std::uint32_t earlier : waits_for)
        for (const std::uint32_t place : places.of(earlier))
          if (std::ranges::find(after, place) == after.end()) after.push_back(place);
      if (!is_mine || (!has_inputs && task.needs_inputs)) {
        // Who waited for it waits for what was before it in its stream, too.
        if (const auto& before = latest[stream]) after.push_back(*before);
        places.leave_out(after);
        continue;
      }
      const auto place = static_cast<std::uint32_t>(program.tasks.size());
      places.add(place);
      latest[stream] = place;
      add(program,
          {.work = task.work, .deed = t, .micro_batch = task.micro_batch, .stream = stream}, after);
      if (task.extra != nobody) {
        const Extra& extra = writer_.extras_[at(task.extra)];
        places.extend(static_cast<std::uint32_t>(program.tasks.size()));
        add(program,
            {.work = free_,
             .deed = extra.deed,
             .micro_batch = task.micro_batch,
             .stream = extra.stream == task.stream ? stream : number_of(extra.stream, 0)},
            {place});
      }
      if (task.ready != nobody)
        for (const std::uint32_t each : places.of(at(task.ready)))
          program.marks.push_back({program::Mark::Kind::ready, place, each});
    }
    add_holds(static_cast<std::uint32_t>(tasks.size()));
    for (const auto& [first, last] : writer_.logged_)
      if (const auto from = places.of(at(first)), to = places.of(at(last));
          !from.empty() && !to.empty())
        program.marks.push_back({program::Mark::Kind::logged, from.front(), to.back()});
    return program;
  }

  static void add(program::Program& program, const program::Task& task,
                  const std::vector<std::uint32_t>& after) {
    program.after.insert(program.after.end(), after.begin(), after.end());
    program.tasks.push_back(task);
    program.tasks.back().after_end = static_cast<std::uint32_t>(program.after.size());
  }

  /// What a rank without inputs sends is zeros.
  void clear(program::Program& program) {
    const auto nothing = static_cast<std::uint32_t>(job_.works.size());
    job_.works.emplace_back();
    for (const program::Slice& each : cleared_) {
      program.tasks.push_back(
          {.work = nothing, .deed = static_cast<std::uint32_t>(job_.own.deeds.size())});
      job_.own.deeds.push_back({program::Fill{.to = each}, {}});
    }
  }

  std::uint8_t stream_of(const Written& task) const {
    return number_of(task.stream, job_.works[task.work].communicator);
  }
  std::uint8_t number_of(StepStream stream, std::uint8_t queue) const {
    int number = static_cast<int>(stream);
    if (stream == StepStream::communication) number += queue;
    if (stream > StepStream::communication) number += writer_.queues_ - 1;
    return static_cast<std::uint8_t>(number);
  }

  StepWriter& writer_;
  program::Job& job_;
  const std::vector<program::Slice>& cleared_;
  const std::uint32_t free_ =
      writer_.extras_.empty() ? 0 : static_cast<std::uint32_t>(job_.works.size()) - 1;
};

StepWriter::StepWriter(const WorkTable& known, const Device& where)
    : device(where),
      kernel_stream(where.synchronous ? StepStream::host : StepStream::compute),
      known_(known),
      numbers_(known.size(), unused) {
  memory.job.labels = {""};
}

std::uint32_t StepWriter::number_of(KnownWork known) {
  std::uint32_t& number = numbers_[known.number];
  if (number == unused) {
    number = static_cast<std::uint32_t>(works().size());
    memory.job.works.push_back(known_[known.number]);
  }
  return number;
}

std::uint32_t StepWriter::number_of(const Work& work) {
  const std::uint32_t fresh = fresh_.add(work);
  if (fresh < fresh_numbers_.size()) return fresh_numbers_[fresh];
  if (const auto known = known_.find(work)) {
    fresh_numbers_.push_back(number_of(KnownWork{*known}));
  } else {
    fresh_numbers_.push_back(static_cast<std::uint32_t>(works().size()));
    memory.job.works.push_back(work);
  }
  return fresh_numbers_.back();
}

void StepWriter::add(Operation what, StepStream stream, std::uint32_t work,
                     const program::Action& action, program::Origin of) {
  if (tasks_.size() >= most_tasks)
    throw std::invalid_argument(
        fmt::format("a step of more than {} tasks is beyond what is simulated: take fewer "
                    "layers, micro-batches or steps of a comm hook",
                    most_tasks));
  has_shards_ = has_shards_ || stream >= StepStream::copy_in;
  has_replicas_ = has_replicas_ || stream == StepStream::replicate;
  Written& task = tasks_.emplace_back();
  task.work = work;
  task.after_end = static_cast<std::uint32_t>(after_.size());
  task.stream = stream;
  task.micro_batch = micro_batch;
  task.needs_inputs = traits_of(what).needs_inputs;
  of.pass = traits_of(what).pass;
  if (of.purpose != program::Purpose::hook) of.purpose = purpose_of(works()[work].message);
  memory.job.own.deeds.push_back({action, of});
}

void StepWriter::kernel_task(Operation what, std::uint32_t work, const program::Action& action,
                             const program::Origin& of) {
  add(what, kernel_stream, work, action, of);
  last_kernel = newest();
}

void StepWriter::depend(std::int32_t on) {
  if (marks != nullptr && tasks_.back().stream == StepStream::host && !device.synchronous)
    marks->step_has("the host waits for the device");
  after_.push_back(static_cast<std::uint32_t>(on));
  tasks_.back().after_end = static_cast<std::uint32_t>(after_.size());
}

void StepWriter::follow(StepStream stream, const program::Action& action) {
  tasks_.back().extra = static_cast<std::int32_t>(extras_.size());
  extras_.push_back({stream, action});
}

std::int16_t StepWriter::communicator(std::uint8_t queue, std::int32_t size, std::int32_t stride) {
  std::vector<program::Communicator>& all = memory.job.communicators;
  const auto [found, added] =
      communicators_.try_emplace({queue, size, stride}, static_cast<std::int16_t>(all.size()));
  if (!added) return found->second;
  program::Communicator& made = all.emplace_back();
  made.name = (size == 0 ? "world" : fmt::format("groups of {}", size)) +
              (stride == 1 ? "" : fmt::format(" across {}", stride)) +
              (queue == 0 ? "" : fmt::format(" {}", queue));
  made.at_once = static_cast<std::uint8_t>(device.collectives_at_once);
  const std::int32_t ranks = size == 0 ? device.ranks : size;
  for (std::int32_t block = 0; block < device.ranks; block += ranks * stride)
    for (std::int32_t first = block; first < std::min(block + stride, device.ranks); ++first) {
      std::vector<std::int32_t>& group = made.groups.emplace_back();
      for (std::int32_t each = 0; each < ranks && first + each * stride < device.ranks; ++each)
        group.push_back(first + each * stride);
    }
  return found->second;
}

program::Slice StepWriter::on_host(const program::Slice& slice, std::int32_t index) {
  const program::Buffer buffer = memory.job.buffers[slice.buffer];
  const program::Slice host = memory.add("host", index, buffer.holds, buffer.type, slice.count);
  memory.job.buffers.back().place = program::Place::host;
  return host;
}

std::int32_t StepWriter::send(const Sending& sending) {
  const Work& work = sending.work;
  program::Collective made = sending.what;
  std::int32_t input = sending.input;
  if (marks != nullptr && device.through_host) marks->step_has("tasks run on more streams");
  if (marks != nullptr && sending.of.group == nobody) marks->sends_other();
  if (device.through_host) {
    Work copy;
    copy.operation = Operation::copy_to_host;
    copy.message = work.message;
    copy.launches = 1;
    copy.payload = work.payload;
    const program::Slice host = on_host(made.from, newest() + 1);
    add(copy.operation, StepStream::to_host, number_of(copy),
        program::Move{.to = host, .from = made.from}, {.group = sending.copied_for});
    if (input != nobody) depend(input);
    input = newest();
    made.to = made.from == made.to ? host : on_host(made.to, input);
    made.from = host;
  }
  made.communicator = communicator(work.communicator, work.group, work.stride);
  queues_ = std::max<std::uint8_t>(queues_, work.communicator + 1);
  add(work.operation, sending.stream, number_of(work), made, sending.of);
  tasks_.back().ready = sending.ready;
  if (input != nobody) depend(input);
  if (sending.behind != nobody) depend(sending.behind);
  const std::int32_t collective = newest();
  if (device.through_host) {
    if (sending.of.group != nobody) sent[at(sending.of.group)] = collective;
    Work copy;
    copy.operation = Operation::copy_to_device;
    copy.message = work.message;
    copy.launches = 0;  // the host that ran the collective enqueues it
    copy.payload = work.operation == Operation::all_gather ? device.ranks * work.payload
                   : work.operation == Operation::reduce_scatter
                       ? Bytes{work.payload.count / device.ranks}
                       : work.payload;
    add(copy.operation, StepStream::to_device, number_of(copy),
        program::Move{.to = sending.what.to, .from = made.to, .unawaited = made.unawaited},
        {.group = sending.copied_for});
    depend(collective);
  }
  if (sending.then != nullptr) follow(StepStream::aside, *sending.then);
  return newest();
}

std::int32_t StepWriter::collective_of(std::int32_t result) const {
  return device.through_host && work_of(result).operation == Operation::copy_to_device ? result - 1
                                                                                       : result;
}

void StepWriter::wait_task(StepStream stream, std::int32_t result, std::int32_t bucket,
                           const program::Action& action) {
  Work work;
  work.operation = Operation::wait;
  work.message = work_of(result).message;
  if (const Operation sent = work_of(collective_of(result)).operation; is_collective(sent))
    work.awaited = sent;
  add(work.operation, stream, number_of(work), action, {.group = bucket});
  depend(result);
}

void StepWriter::host_waits_for_collective(std::int32_t result, std::int32_t bucket) {
  const std::int32_t collective = bucket != nobody ? sent[at(bucket)] : collective_of(result);
  if (collective == nobody) return;
  wait_task(StepStream::host, collective, bucket, program::Wait{});
}

program::Slice StepWriter::note(std::int32_t task, Bytes size) {
  using program::Holds, program::Life, program::Start;
  if (size.count % 4 == 0)
    return memory.add("note", task, Holds::note, DType::fp32, size.count / 4, Life::step,
                      Start::zeros);
  return memory.bytes("note", task, Holds::note, size, Life::step, Start::zeros);
}

std::int32_t StepWriter::announce(Operation operation, Message message, Bytes size,
                                  std::int32_t group) {
  Sending sending;
  sending.work.group = group;
  sending.work.operation = operation;
  sending.work.message = message;
  sending.work.payload = size;
  sending.input = last_kernel;
  program::Collective& made = sending.what;
  made.from = made.to = note(next_collective(), size);
  switch (ddpsim::collective_of(operation)) {
    case CollectiveOperation::all_reduce:
      made.reduction = program::Reduction::sum;
      break;
    case CollectiveOperation::all_gather:
      made.what = program::Collectives::all_gather;
      made.to = note(next_collective(), device.ranks * size);
      break;
    case CollectiveOperation::reduce_scatter:
      made.what = program::Collectives::reduce_scatter;
      made.reduction = program::Reduction::sum;
      made.to = note(next_collective(), Bytes{size.count / device.ranks});
      break;
    case CollectiveOperation::broadcast:
      made.what = program::Collectives::broadcast;
      break;
  }
  return send(sending);
}

void StepWriter::host_reads(std::int32_t task) {
  wait_task(StepStream::host, task, nobody, program::Wait{});
  if (last_kernel != nobody && last_kernel != task) depend(last_kernel);
  if (device.synchronous) last_kernel = newest();
}

void StepWriter::await(std::int32_t result, std::int32_t bucket, const program::Action& then) {
  if (device.through_host) host_waits_for_collective(result, bucket);
  wait_task(kernel_stream, result, bucket, then);
  last_kernel = newest();
}

bool StepWriter::finishes_bucket(std::size_t task) const {
  const Work& work = works()[tasks_[task].work];
  const bool has_bucket = memory.job.own.deeds[task].origin.group != nobody;
  if (work.operation == Operation::copy_out) return has_bucket;
  return work.operation == Operation::wait && (has_bucket || work.message == Message::used_map);
}

void StepWriter::log_iterations() {
  std::size_t begin = 0, end = 0;
  const auto log = [&] {
    if (end > begin)
      logged_.emplace_back(static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end) - 1);
  };
  for (std::size_t t = 0; t < tasks_.size(); ++t) {
    if (t > 0 && tasks_[t].micro_batch != tasks_[t - 1].micro_batch) {
      log();
      begin = end = t;
    }
    if (finishes_bucket(t)) end = t + 1;
  }
  log();
}

void StepWriter::add_streams() {
  const auto lanes = static_cast<std::uint8_t>(device.collectives_at_once);
  for (const StepStream stream : {StepStream::host, StepStream::compute, StepStream::communication,
                                  StepStream::aside, StepStream::to_host, StepStream::to_device}) {
    const bool communicates = stream == StepStream::communication;
    const bool beside = stream != StepStream::host && stream != StepStream::compute;
    const bool halts = communicates || stream == StepStream::aside;
    const std::string name(name_of(stream));
    for (int queue = 0; queue < (communicates ? queues_ : 1); ++queue)
      memory.job.streams.push_back({queue == 0 ? name : fmt::format("{} {}", name, queue), beside,
                                    halts, communicates ? lanes : std::uint8_t{1}});
  }
  if (!has_shards_) return;
  for (const StepStream stream : {StepStream::copy_in, StepStream::gather, StepStream::scatter})
    memory.job.streams.push_back({std::string(name_of(stream)), true, false, std::uint8_t{1}});
  if (has_replicas_)
    memory.job.streams.push_back(
        {std::string(name_of(StepStream::replicate)), true, false, std::uint8_t{1}});
}

/// Nobody prices what is done at no cost.
void StepWriter::add_extras() {
  if (extras_.empty()) return;
  Work& work = memory.job.works.emplace_back();
  work.operation = Operation::own_kernel;
  work.launches = 0;
  for (Extra& extra : extras_) {
    extra.deed = static_cast<std::uint32_t>(memory.job.own.deeds.size());
    memory.job.own.deeds.push_back({extra.action, {}});
  }
}

/// So many ranks, the first ones, differ in what they do; all others do what the last of these
/// does.
int StepWriter::different_ranks() const {
  std::int32_t last = nobody;
  for (const Written& task : tasks_) last = std::max(last, task.owner);
  return last == nobody ? 1 : std::min(device.ranks, last + 2);  // one more, that owns nothing
}

program::Job StepWriter::finish(int without_inputs, const std::vector<program::Slice>& cleared) {
  if (const auto different = static_cast<std::size_t>(different_ranks());
      tasks_.size() * different > most_tasks)
    throw std::invalid_argument(
        fmt::format("a step of {} ranks with different work of {} tasks each is beyond what is "
                    "simulated ({} tasks): take larger buckets",
                    different, tasks_.size(), most_tasks));
  add_streams();
  add_extras();
  Layout(*this, cleared).add_programs(without_inputs);
  return std::move(memory.job);
}

}  // namespace ddpsim
