#pragma once

#include <sys/types.h>

namespace ddpsim {

/// Who goes first on a core that several threads of a rank want.
///
/// A rank's kernels can keep every core busy, while what moves bytes wakes for microseconds,
/// thousands of times a step. To the scheduler they are equals, so a thread that wakes waits for
/// its share, or for the next clock tick: milliseconds, for a transfer of microseconds. Transfers
/// first costs the kernels only the time they really take, and makes both predictable.
///
/// Gloo's own thread is the second trap. When data arrives while the communication thread has the
/// connection locked, it polls again at once until the lock is free. Were it let in front of the
/// holder of that lock on one core, it would poll until the next tick: an all-reduce of 4 KiB then
/// takes 4 ms instead of 0.1 ms. So every call on a connection is the communication thread's, and
/// Gloo's thread never goes before it, and gives way where it finds the lock taken.
enum class Role {
  communication,  ///< first: runs as soon as it wakes
  transport,      ///< Gloo's thread: before kernels, never before the above (SCHED_BATCH)
  computation,    ///< kernels: whenever nobody else on this machine wants the core (SCHED_IDLE)
  /// Kernels beside programs that always want the core: taking turns with them (SCHED_BATCH). Where
  /// others are never done, SCHED_IDLE is left a third of a percent.
  computation_in_turns,
};

/// For this thread, and the threads it starts from now on. Takes no privilege; once computing, a
/// thread stays so. What the system refuses stays as it was.
/// Source: sched(7); sched_setattr(2); Linux, kernel/sched/fair.c, wakeup preemption; Gloo,
/// transport/tcp, where the device's thread tries a connection's lock.
void take_role(Role role);

/// Lets a thread of this process that computes go first again, so that it can end soon. Takes a
/// privilege, and does nothing without it.
void hurry(pid_t thread);

}  // namespace ddpsim
