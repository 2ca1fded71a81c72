// ZeRO: the rank that owns a bucket alone updates its parameters, and sends them to the others.

#include "model/parallel/hooks/comm_hooks.hpp"

namespace ddpsim {
namespace {

/// Source: pytorch ddp_zero_hook.py (rule R45).
void reduce_and_update(HookWriter& writer, bool in_last) {
  write_allreduce(writer);
  HookTask& update = writer.update();
  update.is_owners = true;
  update.in_last = in_last;
  const program::Slice& parameters = writer.bucket.parameters;
  HookTask& send = writer.collective(
      "broadcast parameters", Operation::broadcast,
      {.what = program::Collectives::broadcast, .from = parameters, .to = parameters});
  send.is_owners = true;
  send.in_last = in_last;
}

}  // namespace

void write_zero_step(HookWriter& writer) {
  reduce_and_update(writer, true);
}

void write_zero_step_interleaved(HookWriter& writer) {
  reduce_and_update(writer, false);
}

}  // namespace ddpsim
