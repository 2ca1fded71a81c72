#include "backend/gloo/short_slice.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

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

/// Zero is the system's own slice. A refusal leaves everything as it was.
void set_slice(std::uint64_t slice_ns) {
  SchedulerAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != 0) return;
  attributes.runtime = slice_ns;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace

ShortSlice::ShortSlice() {
  set_slice(shortest_slice_ns);
}
ShortSlice::~ShortSlice() {
  set_slice(0);
}

}  // namespace ddpsim
