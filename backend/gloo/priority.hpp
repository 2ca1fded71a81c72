#pragma once

namespace ddpsim {

/// Who goes first on a core that both want.
///
/// A rank's kernels can keep every core busy, while what moves bytes wakes for microseconds, thousands
/// of times a step. To the scheduler they are equals, so a thread that wakes waits for its share, or
/// for the next clock tick: milliseconds, for a transfer of microseconds. Communication first costs
/// the kernels only the time it really takes, and makes both predictable.
enum class Role {
  communication,  ///< short time slices: runs soon after it wakes
  computation,    ///< nice 10: yields to the above, and to whatever else runs on this machine
};

/// For this thread, and the threads it starts from now on. Takes no privilege; once computing, a
/// thread stays so. Short slices are Linux 6.12's; before, the nice value alone counts. What the system
/// refuses stays as it was.
/// Source: setpriority(2); sched_setattr(2), sched_runtime; Linux, Documentation/scheduler/sched-eevdf.rst.
void take_role(Role role);

}  // namespace ddpsim
