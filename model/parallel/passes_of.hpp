#pragma once

#include "model/parallel/training.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// The network that the passes of this training go over: where it casts parameters, and they are
/// not of that type already, Workload::cast. Parameters have the same indices in both.
inline const Workload& passes_of(const Workload& workload, const Training& training) {
  return training.casts_parameters() && workload.cast ? *workload.cast : workload;
}

}  // namespace ddpsim
