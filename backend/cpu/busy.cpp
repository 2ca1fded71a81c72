#include "backend/cpu/busy.hpp"

#include <ctime>

namespace ddpsim {

Duration processor_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

void be_busy(Duration time) {
  for (const Duration end = processor_time() + time; processor_time() < end;) {
  }
}

}  // namespace ddpsim
