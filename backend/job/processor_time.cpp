#include "backend/job/processor_time.hpp"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace ddpsim {

using std::chrono::nanoseconds;

ProcessorLack::ProcessorLack()
    : thread_(gettid()),
      has_clock_(pthread_getcpuclockid(pthread_self(), &clock_) == 0),
      given_before_(given()) {}

nanoseconds ProcessorLack::given() const {
  timespec time{};
  if (!has_clock_ || clock_gettime(clock_, &time) != 0) return nanoseconds{0};
  return std::chrono::seconds{time.tv_sec} + nanoseconds{time.tv_nsec};
}

bool ProcessorLack::ready() const {
  std::ifstream file(fmt::format("/proc/self/task/{}/stat", thread_));
  std::string text;
  std::getline(file, text);
  const auto name_end = text.rfind(')');  // the name may hold anything
  return name_end != std::string::npos && name_end + 2 < text.size() && text[name_end + 2] == 'R';
}

nanoseconds ProcessorLack::look(nanoseconds passed) {
  const nanoseconds now = given();
  const nanoseconds got = now - std::exchange(given_before_, now);
  if (!has_clock_ || !ready()) return nanoseconds{0};
  return std::max(passed - got, nanoseconds{0});
}

}  // namespace ddpsim
