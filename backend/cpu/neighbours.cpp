#include "backend/cpu/neighbours.hpp"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <thread>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "backend/cpu/priority.hpp"

namespace ddpsim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int questions = 3;
constexpr std::chrono::milliseconds each{30};
constexpr double plainly_free = 0.97, plainly_taken = 0.1;

int cores() {
  cpu_set_t mine;
  return sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : 1;
}

}  // namespace

double share_left_by_others(std::chrono::milliseconds time) {
  std::atomic<pid_t> thread{0};
  std::atomic<bool> stop{false};
  std::thread probe([&] {
    thread = gettid();
    take_role(Role::computation);
    while (!stop) {
    }
  });
  clockid_t clock{};
  double share = 1;
  if (pthread_getcpuclockid(probe.native_handle(), &clock) == 0) {
    const auto given = [clock] {
      timespec now{};
      clock_gettime(clock, &now);
      return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
    };
    while (thread == 0) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    const double before = given();
    const auto start = Clock::now();
    for (auto left = time; left.count() > 0; left -= each) {
      std::this_thread::sleep_for(std::min(left, each));
      const double after = given();
      share = (after - before) / std::chrono::duration<double>(Clock::now() - start).count();
      if (share > plainly_free || share < plainly_taken) break;
    }
  }
  stop = true;
  hurry(thread);
  probe.join();
  return share;
}

bool cores_are_taken(int ranks) {
  const double fair = std::min(1.0, static_cast<double>(cores()) / ranks);
  for (int question = 0; question < questions; ++question)
    if (share_left_by_others(each) >= fair / 2) return false;
  return true;
}

}  // namespace ddpsim
