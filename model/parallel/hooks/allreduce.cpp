// A bucket is divided by the ranks, and summed; what several hooks begin with, and what DDP does
// where a wrapper stands around no hook.

#include "model/parallel/hooks/comm_hooks.hpp"

namespace ddpsim {

/// Source: pytorch default_hooks.py _allreduce_fut.
void write_allreduce(HookWriter& writer) {
  writer.divide("divide", writer.data(), writer.call.ranks);
  writer.all_reduce("all-reduce", writer.data());
}

}  // namespace ddpsim
