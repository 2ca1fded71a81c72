#pragma once

#include "sim/predict/step_model.hpp"
#include "tests/model/workload/timed.hpp"

/// Models of steps whose every cost is chosen.
namespace ddpsim::timed {

/// Without an optimizer but the workload's own.
inline StepModel model_of(const Workload& workload, const CalibratedCluster& cluster) {
  return StepModel(workload, cluster, Optimizer::none);
}

/// Work of an operation that takes `time` on the device, and the host a plain launch.
inline KnownWork taking(StepModel& model, Operation operation, Duration time) {
  Work work;
  work.operation = operation;
  work.known_time = time;
  return {model.works.table.add(work)};
}

/// Whoever enqueues a kernel of a pass, it costs the host no more than a launch, which takes
/// `launch`.
inline StepModel with_plain_launches(const Workload& workload, CalibratedCluster cluster,
                                     Duration launch) {
  cluster.launch.kernel = launch;
  StepModel model = model_of(workload, cluster);
  for (StepWorks::LayerWorks& layer : model.works.layers)
    for (auto* pass : {&layer.forward, &layer.backward})
      for (KnownWork& known : *pass) {
        Work work = model.works.table[known.number];
        work.caller = Caller::library;
        known.number = model.works.table.add(work);
      }
  return model;
}

/// Copies, divisions and accumulations take no time, of the host neither: only what a test says
/// does.
inline void free_copies(StepModel& model) {
  const auto free = [&](Operation operation) {
    return KnownWork{model.works.table.add(moving(operation, Bytes{}, Caller::library, 0))};
  };
  StepWorks& works = model.works;
  works.copy_in.assign(works.parameters(), free(Operation::copy_in));
  works.copy_out.assign(works.parameters(), free(Operation::copy_out));
  works.copy_back.assign(works.parameters(), free(Operation::copy_out));
  works.divide.assign(works.parameters(), free(Operation::divide));
  works.accumulate.assign(works.parameters(), free(Operation::accumulate));
  works.concatenate = free(Operation::concatenate);
  works.flat_divide = free(Operation::divide);
}

}  // namespace ddpsim::timed
