#include "sim/predict/step_model.hpp"

namespace ddpsim {

StepModel::StepModel(const Workload& workload, const CalibratedCluster& cluster,
                     Optimizer optimizer)
    : works(workload, cluster, optimizer), costs(cluster, workload.step_spread) {}

}  // namespace ddpsim
