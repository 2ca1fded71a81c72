#include "model/parallel/policy/before_forward.hpp"

#include <algorithm>

#include "model/parallel/policy/iteration.hpp"
#include "model/parallel/policy/message_sizes.hpp"

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
    const program::Operands from = writer_.memory.list({step_.memory.module_buffers(group)});
    const program::Operands to = writer_.memory.list({step_.memory.flat_buffers(group)});
    writer_.kernel_task(Operation::concatenate, buffers.flatten,
                        program::Pack{.to = to, .from = from}, {.kernel = index_of(group)});
    StepWriter::Sending sending;
    sending.work = step_.works.table[buffers.broadcast.number];
    sending.what.what = program::Collectives::broadcast;
    // With uneven inputs: from the last rank that has some (rule R36).
    if (step_.training.join)
      sending.what.root = static_cast<std::int16_t>(
          std::max(0, step_.works.device.ranks - 1 - step_.training.join->joined_ranks));
    sending.what.from = sending.what.to = step_.memory.flat_buffers(group);
    sending.of.kernel = index_of(group);
    sending.input = writer_.last_kernel;
    sent_.push_back(writer_.send(sending));
  }

  void finish(std::size_t group) {
    writer_.await(sent_[group]);
    const program::Operands to = writer_.memory.list({step_.memory.module_buffers(group)});
    const program::Operands from = writer_.memory.list({step_.memory.flat_buffers(group)});
    writer_.kernel_task(Operation::copy_out, step_.works.buffers[group].restore,
                        program::Pack{.to = to, .from = from}, {.kernel = index_of(group)});
  }

  static std::int32_t index_of(std::size_t group) { return static_cast<std::int32_t>(group); }

  StepBuilder& step_;
  StepWriter& writer_;
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
  StepWriter& writer = step.writer;
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
