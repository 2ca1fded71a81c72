#include <array>
#include <utility>

#include "tools/kineto/kineto_rank.hpp"
#include "tools/study/shown_memory.hpp"

namespace ddpsim {

void write_memory(TraceEvents& events, const TracedStep& step) {
  const int process = step.synchronous ? step.where.host : step.where.device;
  std::array<std::pair<std::string_view, double>, shown_memory_kinds.size()> values;
  for (const ShownMemory& each : shown_memory(step.scenario, step.step, at(step.where.like))) {
    for (std::size_t k = 0; k < values.size(); ++k)
      values[k] = {shown_memory_kinds[k], static_cast<double>(each.bytes[k].count)};
    events.counter(process, "memory", each.at, values);
  }
}

}  // namespace ddpsim
