#pragma once

#include <chrono>

namespace ddpsim {

/// The share of the time that the cores of this thread leave to one that computes only when nobody
/// else wants them (Role::computation): 1 on a quiet machine, near 0 beside a program that is never
/// done. Computes on a thread of its own for `time`, or less where 30 ms leave no doubt that the
/// cores are free or taken.
double share_left_by_others(std::chrono::milliseconds time);

/// Do other programs keep the cores of this thread so busy that such a thread would starve? Asks
/// three times for 30 ms, and believes it only if all say so. `ranks` of this host ask at once: on
/// fewer cores than ranks each counts on its part.
bool cores_are_taken(int ranks);

}  // namespace ddpsim
