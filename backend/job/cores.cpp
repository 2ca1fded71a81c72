#include "backend/job/cores.hpp"

#include <sched.h>

namespace ddpsim {

void take_share_of_cores(int rank, int ranks) {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof(all), &all) != 0) return;  // more than CPU_SETSIZE cores
  const int share = CPU_COUNT(&all) / ranks;
  if (share == 0) return;
  cpu_set_t mine;
  CPU_ZERO(&mine);
  int position = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &all) && position++ / share == rank) CPU_SET(core, &mine);
  sched_setaffinity(0, sizeof(mine), &mine);
}

}  // namespace ddpsim
