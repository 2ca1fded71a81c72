// Gradients are reduced over all ranks, and after some iterations within each subgroup, or not at
// all; the averaging of models beside it is the strategy's.

#include "model/parallel/hooks/comm_hooks.hpp"

namespace ddpsim {

/// Source: pytorch post_localSGD_hook.py.
void write_post_local_sgd(HookWriter& writer) {
  const PostLocalSgd& state = writer.hook.post_local_sgd;
  const int subgroup = state.subgroup_of(writer.call.ranks_per_node);
  if (writer.is_among_first(state.start_iteration)) return write_allreduce(writer);
  if (!state.gradient_allreduce) return;
  if (subgroup >= writer.call.ranks) return write_allreduce(writer);
  writer.divide("divide", writer.data(), subgroup);
  HookTask& reduce = writer.all_reduce("all-reduce in subgroup", writer.data());
  reduce.work.communicator = 1;
  reduce.work.group = subgroup;
}

}  // namespace ddpsim
