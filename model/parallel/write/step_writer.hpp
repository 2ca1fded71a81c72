#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "model/parallel/write/bucket_marks.hpp"
#include "model/parallel/write/job_memory.hpp"
#include "model/program/job.hpp"
#include "model/program/work.hpp"

namespace ddpsim {

/// A piece of work in a table that many steps are written from.
struct KnownWork {
  std::uint32_t number = 0;
};

/// The streams of a step. What a comm hook computes once a collective has ended runs aside: on a
/// stream of its own, or, of a device whose kernels run on the host thread, on the thread that
/// communicates. Copies between a GPU's memory and the host's have a stream for each direction.
/// Shards are packed, gathered, scattered and reduced among replicas on streams of their own; a job
/// has these if it uses them.
enum class StepStream : std::uint8_t {
  host,
  compute,
  communication,
  aside,
  to_host,
  to_device,
  copy_in,
  gather,
  scatter,
  replicate,
};
std::string_view name_of(StepStream stream);

/// Writes a step as a job: what all ranks do, in the order in which hosts issue it. Ranks that do
/// not do all of it have programs of their own, in which it is left out.
///
/// Streams keep that order by themselves; what crosses streams is written as a dependency. A task
/// is named by its place among all that is written.
/// Throws std::invalid_argument beyond `most_tasks`.
class StepWriter {
 public:
  static constexpr std::size_t most_tasks = 10'000'000;

  /// Where tasks run, as far as it shapes the step.
  struct Device {
    int ranks = 1;
    bool synchronous = false;  ///< kernels run on the host thread
    /// Collectives run on the hosts, over copies out of the devices and back.
    bool through_host = false;
    int collectives_at_once = 1;
  };

  /// `known` must outlive the writer.
  StepWriter(const WorkTable& known, const Device& device);

  /// The number of a piece of work in the job's list, to which the work is added if it is new.
  std::uint32_t number_of(KnownWork known);
  std::uint32_t number_of(const Work& work);
  const Work& work_of(std::int32_t task) const { return works()[tasks_[at(task)].work]; }

  /// Adds a task; `of` says where it comes from besides its pass and purpose, which `what` and the
  /// work's message tell (a comm hook's purpose stays).
  void add(Operation what, StepStream stream, std::uint32_t work, const program::Action& action,
           program::Origin of = {});
  /// On the host, for as long as its work says.
  void host_task(Operation what, const Work& work, const program::Action& action,
                 const program::Origin& of = {}) {
    add(what, StepStream::host, number_of(work), action, of);
  }
  /// On the stream on which kernels run; it becomes `last_kernel`.
  void kernel_task(Operation what, std::uint32_t work, const program::Action& action,
                   const program::Origin& of = {});
  void kernel_task(Operation what, KnownWork work, const program::Action& action,
                   const program::Origin& of = {}) {
    kernel_task(what, number_of(work), action, of);
  }
  void kernel_task(Operation what, const Work& work, const program::Action& action,
                   const program::Origin& of = {}) {
    kernel_task(what, number_of(work), action, of);
  }

  // These are about the newest task:
  std::int32_t newest() const { return static_cast<std::int32_t>(tasks_.size()) - 1; }
  void depend(std::int32_t on);
  /// This rank alone does it.
  void leave_to(std::int32_t rank) { tasks_.back().owner = rank; }
  /// Ranks without inputs do it too.
  void everybody_does() { tasks_.back().needs_inputs = false; }
  program::Deed& deed() { return memory.job.own.deeds.back(); }
  /// Behind it this is done too, at no cost in a prediction; who waits for it waits for both.
  void follow(StepStream stream, const program::Action& action);
  void follow(const program::Action& action) { follow(tasks_.back().stream, action); }
  /// Before the next task is issued a buffer of life `held` comes, out of the pool of a stream, or
  /// goes. (A synchronous device has one pool.)
  void comes(const program::Slice& buffer, StepStream pool) { hold(buffer, pool, true); }
  void goes(const program::Slice& buffer, StepStream pool) { hold(buffer, pool, false); }

  /// All ranks in groups of so many (0: all), each `stride` behind the one before, in a queue of
  /// their own.
  std::int16_t communicator(std::uint8_t queue, std::int32_t size, std::int32_t stride = 1);

  /// What is sent. Where collectives run on the hosts (Device::through_host) its input is copied
  /// there before, and its result back behind it.
  /// Source: ProcessGroupGloo.cpp AsyncAllreduceCUDAWork (rule R38).
  struct Sending {
    StepStream stream = StepStream::communication;
    Work work{};                            ///< payload: each rank's input
    program::Collective what{};             ///< without its communicator
    program::Origin of{};                   ///< of the collective
    std::int32_t copied_for = nobody;       ///< the bucket whose the copies are
    std::int32_t input = nobody;            ///< the task that made its input
    std::int32_t behind = nobody;           ///< a task that it comes behind besides
    std::int32_t ready = nobody;            ///< the task that completed what it sends, for people
    const program::Action* then = nullptr;  ///< done once its result is on the device
  };
  /// Returns the task that has the result: the collective, or the copy back.
  std::int32_t send(const Sending& sending);
  /// The collective that `send` adds next.
  std::int32_t next_collective() const { return newest() + (device.through_host ? 2 : 1); }
  /// The collective whose result `send` returned.
  std::int32_t collective_of(std::int32_t result) const;
  /// Gloo's wait blocks the host until the collective itself is done: the last one of a bucket, if
  /// it has sent any.
  void host_waits_for_collective(std::int32_t result, std::int32_t bucket);

  /// A collective of DDP's or fsdp's own, among so many ranks (0: all), over memory that nobody
  /// looks at; returns the task that has its result.
  std::int32_t announce(Operation operation, Message message, Bytes size, std::int32_t group = 0);
  /// The host stands still until a task has ended, and what was enqueued before (a blocking copy to
  /// the host).
  void host_reads(std::int32_t task);
  /// The host stands still until a task has ended (an event that it synchronizes with).
  void host_waits(std::int32_t task) { wait_task(StepStream::host, task, nobody, program::Wait{}); }
  /// What follows on the device waits for the result of a collective; `then`: and for what is done
  /// with it meanwhile.
  void await(std::int32_t result, std::int32_t bucket = nobody,
             const program::Action& then = program::Wait{});

  /// Memory of its own for what the task of this number sends.
  program::Slice note(std::int32_t task, Bytes size);

  /// DDP's logger counts every micro-batch that communicates as an iteration (rule R47): from its
  /// first task to the last that finishes what a bucket, or the used map, sent.
  void log_iterations();

  /// The job: `without_inputs` ranks, the last ones, have run out of inputs and send zeros, which
  /// they put into `cleared` first. Passes, groups and gradients are the caller's to say.
  program::Job finish(int without_inputs, const std::vector<program::Slice>& cleared);

  const Device device;
  const StepStream kernel_stream;
  program::JobMemory memory;
  std::int16_t micro_batch = 0;       ///< of what is added
  std::int32_t last_kernel = nobody;  ///< the task enqueued last on the stream kernels run on
  /// [bucket] its latest collective, where those run on the hosts.
  std::vector<std::int32_t> sent;
  BucketMarks* marks = nullptr;  ///< told what buckets decide; null: nobody asks

 private:
  /// A task among all that is written; its deed has the same number.
  struct Written {
    std::uint32_t work = 0;
    std::uint32_t after_end = 0;  ///< as in program::Task
    StepStream stream = StepStream::compute;
    std::int16_t micro_batch = 0;
    bool needs_inputs = false;
    std::int32_t owner = nobody;  ///< the one rank that does it
    std::int32_t ready = nobody;
    std::int32_t extra = nobody;  ///< index into extras_
  };
  struct Held {
    std::uint32_t before = 0;
    program::BufferId buffer = program::no_buffer;
    StepStream pool = StepStream::compute;
    bool begins = false;
  };
  struct Extra {
    StepStream stream = StepStream::host;
    program::Action action;
    std::uint32_t deed = 0;
  };
  class Layout;

  const std::vector<Work>& works() const { return memory.job.works; }
  void hold(const program::Slice& buffer, StepStream pool, bool begins) {
    holds_.push_back({static_cast<std::uint32_t>(tasks_.size()), buffer.buffer,
                      device.synchronous ? StepStream::compute : pool, begins});
  }
  bool finishes_bucket(std::size_t task) const;
  bool is_done_by(const Written& task, int rank) const {
    return task.owner == nobody || task.owner == rank;
  }
  void wait_task(StepStream stream, std::int32_t result, std::int32_t bucket,
                 const program::Action& action);
  program::Slice on_host(const program::Slice& device, std::int32_t index);
  void add_streams();
  void add_extras();
  int different_ranks() const;

  static constexpr std::uint32_t unused = ~std::uint32_t{0};

  const WorkTable& known_;
  std::vector<std::uint32_t> numbers_;        ///< [known work] its number in the job, or unused
  WorkTable fresh_;                           ///< work that is not known
  std::vector<std::uint32_t> fresh_numbers_;  ///< [fresh work] its number in the job
  std::vector<Written> tasks_;
  std::vector<std::uint32_t> after_;
  std::vector<Extra> extras_;
  std::vector<Held> holds_;
  bool has_shards_ = false;    ///< streams for them
  bool has_replicas_ = false;  ///< of shards: likewise
  std::vector<std::pair<std::int32_t, std::int32_t>> logged_;
  std::map<std::tuple<std::uint8_t, std::int32_t, std::int32_t>, std::int16_t> communicators_;
  std::uint8_t queues_ = 1;  ///< of collectives
};

}  // namespace ddpsim
