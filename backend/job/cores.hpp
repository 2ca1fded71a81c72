#pragma once

namespace ddpsim {

/// Binds this thread, and the threads it starts from now on, to this rank's share of the cores it
/// may use: as many as every rank gets, in order. So ranks of one host disturb each other no more
/// than they must. With fewer cores than ranks nothing is bound. Source: sched_setaffinity(2); Open
/// MPI binds its processes too.
void take_share_of_cores(int rank, int ranks);

}  // namespace ddpsim
