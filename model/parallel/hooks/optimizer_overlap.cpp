// The optimizer updates the parameters of a bucket once that is reduced.

#include "model/parallel/hooks/comm_hooks.hpp"

namespace ddpsim {

/// Source: pytorch optimizer_overlap_hooks.py _apply_optim_in_backward_hook (rule R44).
void write_optimizer_overlap(HookWriter& writer) {
  writer.all_reduce("all-reduce", writer.data());
  writer.divide("divide", writer.data(), writer.call.ranks);
  writer.update();
}

}  // namespace ddpsim
