#include "backend/measure/steal.hpp"

#include <algorithm>
#include <array>
#include <fstream>

#include <unistd.h>

namespace ddpsim {

Steal::Steal(std::string stat)
    : stat_(std::move(stat)), begin_(std::chrono::steady_clock::now()), used_(used_until_now()) {}

Steal::Used Steal::used_until_now() const {
  std::ifstream file(stat_);
  std::string cpu;  // the first line is the sum over processors
  std::array<double, 8> ticks{};
  file >> cpu;
  for (double& each : ticks)
    if (!(file >> each)) return {};  // an old kernel does not say
  const auto& [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
  const auto per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  return {(user + nice + system + irq + softirq) / per_second, steal / per_second};
}

double Steal::share() const {
  using namespace std::chrono;
  const duration<double> passed = steady_clock::now() - begin_;
  if (passed < milliseconds{50}) return 0;
  const Used now = used_until_now();
  const double stolen = std::max(0.0, now.stolen - used_.stolen);
  return stolen / std::max(passed.count(), now.worked - used_.worked + stolen);
}

}  // namespace ddpsim
