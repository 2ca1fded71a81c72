#pragma once

#include "model/cost/cost_model.hpp"
#include "model/parallel/write/step_works.hpp"
#include "model/scenario/scenario.hpp"

namespace ddpsim {

/// All that predicting steps of one workload on one cluster takes: what they consist of, and what
/// that costs. Many jobs (strategies, bucket sizes) are built and priced from one.
struct StepModel {
  StepModel(const Workload& workload, const CalibratedCluster& cluster, Optimizer optimizer);

  StepWorks works;
  CostModel costs;
};

}  // namespace ddpsim
