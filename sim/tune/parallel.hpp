#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include <sched.h>

namespace ddpsim {

/// The cores this process may use, at least one.
inline int allowed_cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Calls `work(thread, index)` once for every index below `count`, on up to `threads` threads at a
/// time, each numbered from 0 (which is the caller's own). Where the system starts no more threads
/// those it started do all. The first exception comes out here, once all have stopped.
template <typename Work>
void parallel_for(std::size_t count, int threads, Work&& work) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr problem;
  std::mutex guard;
  const auto run = [&](int thread) {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(thread, i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(guard);
      if (!problem) problem = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    const int most =
        static_cast<int>(std::min(count, static_cast<std::size_t>(std::max(threads, 1))));
    try {
      for (int thread = 1; thread < most; ++thread) others.emplace_back(run, thread);
    } catch (const std::system_error&) {  // no more threads, or no memory for their stacks
    } catch (const std::bad_alloc&) {
    }
    run(0);
  }
  if (problem) std::rethrow_exception(problem);
}

}  // namespace ddpsim
