#pragma once

#include <optional>
#include <string>

namespace ddpsim {

/// What a batch system gave to the job that this process is part of.
struct Allocation {
  std::string system;  ///< "Slurm", "PBS", "LSF"
  std::string starts;  ///< the program that starts a process for each task: "srun", "mpirun"
  int nodes = 1;
  int tasks = 1;  ///< on all nodes; 1 where the batch system does not say
};

/// The allocation in whose script or shell this process runs, where it has several nodes or tasks
/// and no launcher made this process one of its ranks (rank_from_environment): nothing then runs on
/// the other nodes. None elsewhere. The first of these that is set:
///
///     SLURM_JOB_ID   with SLURM_JOB_NUM_NODES (or SLURM_NNODES) and SLURM_NTASKS
///     PBS_NODEFILE   a file with a line for each task, which is the name of its host
///     LSB_HOSTS      the name of its host for each task, between blanks
///
/// Under PBS and LSF a host with several places counts as one task. A count that is no number is
/// taken for one. Throws std::invalid_argument as rank_from_environment does.
std::optional<Allocation> allocation_left_alone();

}  // namespace ddpsim
