#pragma once

#include <string_view>

#include "tools/import/trace_events.hpp"

namespace ddpsim {

// What the names in a trace mean: the one place that knows how versions of PyTorch, NCCL and RCCL
// spell them.

/// Where an event happened, by its category.
enum class Source : std::uint8_t { host, runtime, device, ignored };
Source source_of(std::string_view category);

struct NameMeaning {
  bool matters = false;
  HostKind kind = HostKind::compute;  ///< of a host event
  std::int32_t number = -1;           ///< of a step
  bool collective = false;            ///< of a device event: a collective's kernel
  bool kernel = true;                 ///< of a device event: neither a copy nor a fill
  bool graph = false;                 ///< of a launch: of a CUDA graph
  bool sync = false;                  ///< of the runtime: waits for the device, launches nothing
  CollectiveKind collective_kind = CollectiveKind::unknown;
};
NameMeaning meaning_of(Source source, std::string_view name);

/// "allreduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", "nccl:all_reduce",
/// "c10d::allreduce_", "_allgather_base": which collective.
CollectiveKind collective_kind_of(std::string_view name);

}  // namespace ddpsim
