#include "backend/cpu/priority.hpp"

#include <cstdint>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ddpsim {
namespace {

/// The kernel's struct sched_attr, which the headers of Debian 12 do not declare.
struct SchedulerAttributes {
  std::uint32_t size = sizeof(SchedulerAttributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0, deadline = 0, period = 0;
};

constexpr std::uint64_t shortest_slice_ns = 100'000;  // honoured from Linux 6.12 on

std::uint32_t policy_of(Role role) {
  switch (role) {
    case Role::communication:
      return SCHED_OTHER;
    case Role::transport:
    case Role::computation_in_turns:
      return SCHED_BATCH;
    case Role::computation:
      return SCHED_IDLE;
  }
  return SCHED_OTHER;
}

}  // namespace

void take_role(Role role) {
  SchedulerAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != SCHED_OTHER && attributes.policy != SCHED_BATCH)
    return;  // someone has chosen another scheduler
  attributes.policy = policy_of(role);
  const bool computes = role == Role::computation || role == Role::computation_in_turns;
  attributes.runtime = computes ? 0 : shortest_slice_ns;  // zero: the system's own
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void hurry(pid_t thread) {
  SchedulerAttributes attributes;
  syscall(SYS_sched_setattr, thread, &attributes, 0);
}

}  // namespace ddpsim
