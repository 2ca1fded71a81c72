#include "model/ddp/before_forward.hpp"

#include <algorithm>

#include "model/ddp/iteration.hpp"
#include "model/ddp/message_sizes.hpp"

namespace ddpsim {
namespace {

/// Buffers are flattened, broadcast and copied back. At most two groups are on their way at a time.
/// Source: comm.cpp broadcast_coalesced.
class BufferBroadcast {
 public:
  explicit BufferBroadcast(StepBuilder& step) : step_(step), writer_(step.writer) {}

  void run() {
    constexpr std::size_t most_in_flight = 2;
    const std::size_t groups = step_.works.buffers.size();
    for (std::size_t group = 0; group < groups; ++group) {
      if (group >= most_in_flight) finish(group - most_in_flight);
      begin(group);
    }
    for (std::size_t group = groups - std::min(groups, most_in_flight); group < groups; ++group)
      finish(group);
  }

 private:
  void begin(std::size_t group) {
    const StepWorks::BufferWorks& buffers = step_.works.buffers[group];
    writer_.kernel_task(Operation::concatenate, buffers.flatten).kernel = index_of(group);
    const std::int32_t flat =
        writer_.input_of(Message::buffers, buffers.size, writer_.last_kernel, nobody);
    Task& broadcast = writer_.add(Operation::broadcast, Stream::communication,
                                  writer_.number_of(buffers.broadcast));
    broadcast.kernel = index_of(group);
    // With uneven inputs: from the last rank that has some (rule R36).
    if (step_.training.join)
      broadcast.owner =
          std::max(0, step_.works.device.ranks - 1 - step_.training.join->joined_ranks);
    writer_.depend(broadcast, flat);
    sent_.push_back(writer_.result_of(buffers.size));
  }

  void finish(std::size_t group) {
    if (writer_.device.through_host) writer_.host_waits_for_collective(sent_[group], nobody);
    Work work;
    work.operation = Operation::wait;
    work.message = Message::buffers;
    Task& wait = writer_.add(Operation::wait, writer_.kernel_stream, writer_.number_of(work));
    wait.host_waits = writer_.device.synchronous;
    writer_.depend(wait, sent_[group]);
    writer_.kernel_task(Operation::copy_out, step_.works.buffers[group].restore).kernel =
        index_of(group);
  }

  static std::int32_t index_of(std::size_t group) { return static_cast<std::int32_t>(group); }

  StepBuilder& step_;
  ScheduleWriter& writer_;
  std::vector<std::int32_t> sent_;  ///< [group] the task that has its result
};

}  // namespace

std::int64_t ddp_parameters(const StepBuilder& step) {
  const auto& delayed = step.training.delayed;
  return static_cast<std::int64_t>(step.works.parameters() -
                                   (delayed ? delayed->parameters.size() : 0));
}

std::int32_t announce_before_forward(StepBuilder& step, std::int64_t ddp_buckets) {
  const Training& training = step.training;
  ScheduleWriter& writer = step.writer;
  std::int32_t active_ranks = nobody;
  if (training.join) {
    // The host waits for a flag only if it has to know its value.
    active_ranks = writer.announce(Operation::all_reduce, Message::active_ranks, flag_size);
    if (training.join->throw_on_early_termination)
      writer.host_reads(writer.announce(Operation::all_reduce, Message::early_end, flag_size));
  }
  if (writer.micro_batch == 0 && rebuilds_now(training)) {
    const Bytes indices = (ddp_parameters(step) + 1) * flag_size;
    writer.host_reads(writer.announce(Operation::broadcast, Message::bucket_indices, indices));
    writer.host_reads(
        writer.announce(Operation::broadcast, Message::bucket_lengths, ddp_buckets * flag_size));
  }
  // A forward pass after one inside no_sync leaves the buffers alone; the first of a step follows
  // the last of the step before, which was synchronised (rule R28).
  const bool after_synced = writer.micro_batch == 0 || !training.no_sync;
  if (after_synced && training.broadcast_buffers && !step.works.buffers.empty()) {
    if (training.join)
      writer.host_reads(
          writer.announce(Operation::all_reduce, Message::buffer_source, rank_number_size));
    BufferBroadcast(step).run();
  }
  if (training.join) writer.announce(Operation::all_reduce, Message::will_sync, flag_size);
  return active_ranks;
}

}  // namespace ddpsim
