#pragma once

#include <cstdint>
#include <vector>

#include "model/schedule/schedule.hpp"

namespace ddpsim {

/// A piece of work in a table that many schedules are written from.
struct KnownWork {
  std::uint32_t number = 0;
};

/// Writes the tasks of one step in the order in which the host issues them.
///
/// Streams keep that order by themselves; what crosses streams is written as a dependency. A task
/// is named by its place in the schedule; a Task& holds until the next task is added.
/// Throws std::invalid_argument beyond `most_tasks`.
class ScheduleWriter {
 public:
  static constexpr std::size_t most_tasks = 10'000'000;

  /// Where tasks run, as far as it shapes the schedule.
  struct Device {
    int ranks = 1;
    bool synchronous = false;  ///< kernels run on the host thread
    /// Collectives run on the hosts, over copies out of the devices and back.
    bool through_host = false;
    int collectives_at_once = 1;
  };

  /// `known` must outlive the writer.
  ScheduleWriter(const WorkTable& known, const Device& device);

  /// The number of a piece of work in the schedule's table, to which the work is added if it is
  /// new.
  std::uint32_t number_of(KnownWork known);
  std::uint32_t number_of(const Work& work);

  Task& add(Operation operation, Stream stream, std::uint32_t work);
  void depend(Task& task, std::int32_t on);
  std::int32_t newest() const { return static_cast<std::int32_t>(schedule.tasks.size()) - 1; }

  /// On the host, for as long as its work says.
  Task& host_task(Operation operation, const Work& work);
  /// Adds a task on the stream on which kernels run, and makes it `last_kernel`.
  Task& kernel_task(Operation operation, std::uint32_t work);
  Task& kernel_task(Operation operation, KnownWork work);
  Task& collective_task(const Work& work);

  // Collectives on the hosts (Device::through_host): before each, its input is copied there, and
  // behind it its result is copied back. Where collectives run on the devices these do nothing.
  // Source: ProcessGroupGloo.cpp AsyncAllreduceCUDAWork (rule R38).

  /// The task that a collective of `size` has to wait for: `ready`, or the copy of its output.
  std::int32_t input_of(Message message, Bytes size, std::int32_t ready, std::int32_t bucket);
  /// The task that has the result of the collective that was just added: itself, or the copy back.
  /// `size`: each rank's input.
  std::int32_t result_of(Bytes size);
  /// The collective whose result `result_of` returned.
  std::int32_t collective_of(std::int32_t result) const;
  /// Gloo's wait blocks the host until the collective itself is done: the last one of a bucket, if
  /// it has sent any.
  void host_waits_for_collective(std::int32_t result, std::int32_t bucket);

  /// A collective of DDP's own, behind `before` if that is a task; returns the task that has its
  /// result.
  std::int32_t announce(Operation operation, Message message, Bytes size,
                        std::int32_t before = nobody, bool handed_over = false);
  /// The host stands still until a task has ended, and what was enqueued before (a blocking copy to
  /// the host).
  void host_reads(std::int32_t task);
  /// What follows on the device waits for the result of a collective.
  void await(std::int32_t result, std::int32_t bucket = nobody);

  const Device device;
  const Stream kernel_stream;
  Schedule schedule;
  std::int16_t micro_batch = 0;       ///< of what is added
  std::int32_t last_kernel = nobody;  ///< the task enqueued last on the stream kernels run on
  /// [bucket] its latest collective, where those run on the hosts.
  std::vector<std::int32_t> sent;

 private:
  Task& wait_task(Stream stream, std::int32_t result, std::int32_t bucket);
  Message message_of(std::int32_t task) const {
    return schedule.work_of(schedule.tasks[at(task)]).message;
  }

  static constexpr std::uint32_t unused = ~std::uint32_t{0};

  const WorkTable& known_;
  std::vector<std::uint32_t> numbers_;  ///< [known work] its number in the schedule, or unused
  WorkTable fresh_;                     ///< work that is not known
  std::vector<std::uint32_t> fresh_numbers_;  ///< [fresh work] its number in the schedule
};

}  // namespace ddpsim
