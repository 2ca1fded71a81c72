#include "backend/gloo/priority.hpp"

#include <algorithm>
#include <cstdint>

#include <sys/syscall.h>
#include <unistd.h>

namespace ddpsim {
namespace {

/// As the kernel defines it; Debian 12's headers do not.
struct SchedulerAttributes {
  std::uint32_t size = sizeof(SchedulerAttributes);
  std::uint32_t policy = 0;  // SCHED_OTHER
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0, deadline = 0, period = 0;
};

constexpr std::uint64_t shortest_slice_ns = 100'000;
constexpr std::int32_t yielding = 10;

}  // namespace

void take_role(Role role) {
  SchedulerAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != 0) return;  // someone has chosen another scheduler
  const bool computes = role == Role::computation;
  attributes.runtime = computes ? 0 : shortest_slice_ns;  // zero: the system's own
  if (computes) attributes.nice = std::max(attributes.nice, yielding);
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace ddpsim
