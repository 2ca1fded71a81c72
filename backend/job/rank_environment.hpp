#pragma once

#include <optional>
#include <string>

namespace ddpsim {

/// Which rank of its job this process was started to be.
struct RankPlace {
  int rank = 0;
  int ranks = 1;
  int local_rank = 0;    ///< among those of this host; the rank where the launcher does not say
  int local_ranks = 0;   ///< on this host; 0: not known
  std::string launcher;  ///< "torchrun", "mpirun", "srun", or "the environment": set by hand
  /// A name of the job, the same for all its ranks and no other job's that runs now, safe as a file
  /// name; empty: none known. A later job may have it again (torchrun on the same port).
  std::string job;
};

/// The place a launcher gave this process; none if it was started by itself. The first of these
/// whose rank is set:
///
///     RANK of WORLD_SIZE                           torchrun, or set by hand
///     OMPI_COMM_WORLD_RANK of OMPI_COMM_WORLD_SIZE mpirun of Open MPI
///     PMI_RANK of PMI_SIZE                         mpirun of MPICH and its kin
///     SLURM_PROCID of SLURM_STEP_NUM_TASKS         srun
///
/// Afterwards 0 <= rank < ranks, 0 <= local_rank < ranks and, if known, local_rank < local_ranks <=
/// ranks. Slurm also numbers the shell of a batch or interactive job, which is no rank: only
/// processes of a step count.
/// Throws std::invalid_argument, naming variable and value, for what is not such a number (a job
/// has at most 100000 ranks) and for a rank without the number of ranks.
std::optional<RankPlace> rank_from_environment();

}  // namespace ddpsim
