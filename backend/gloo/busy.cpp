#include "backend/gloo/busy.hpp"

#include <ctime>

namespace ddpsim {
namespace {

Duration cpu_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

}  // namespace

void be_busy(Duration time) {
  for (const Duration end = cpu_time() + time; cpu_time() < end;) {
  }
}

}  // namespace ddpsim
