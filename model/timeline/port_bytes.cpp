#include "model/timeline/port_bytes.hpp"

#include <cmath>

namespace ddpsim {

double port_share(Operation operation, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (collective_of(operation)) {
    case CollectiveOperation::all_reduce:
      return 2 * others;
    case CollectiveOperation::all_gather:  // each rank's input is one part of the result
      return ranks - 1;
    case CollectiveOperation::reduce_scatter:
      return others;
    case CollectiveOperation::broadcast:
      return 1;
  }
  return 1;
}

int ranks_of(const program::Job& job, const Work& work) {
  return work.group > 0 ? work.group : static_cast<int>(job.ranks());
}

Bytes port_bytes_of_parts(const Work& work, int ranks) {
  const Bytes others = (ranks - 1) * work.payload;
  return work.operation == Operation::all_gather ? others : Bytes{others.count / ranks};
}

Bytes port_bytes(const RankOfJob& rank) {
  double sent = 0;
  for (const program::Task& task : rank.program.tasks) {
    const Work& work = rank.job.works[task.work];
    const bool counts = std::holds_alternative<program::Collective>(rank.action_of(task)) &&
                        rank.origin_of(task).purpose != program::Purpose::network;
    if (counts && !is_of_jobs_alone(work.operation))
      sent += port_share(work.operation, ranks_of(rank.job, work)) *
              static_cast<double>(work.payload.count);
  }
  return {std::llround(sent)};
}

}  // namespace ddpsim
