#include "backend/measure/pace.hpp"

#include <algorithm>
#include <cstdint>
#include <thread>

#include <sched.h>

#include "backend/measure/samples.hpp"

namespace ddpsim {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<int> own_processors() {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof(all), &all) != 0) return {0};  // more than CPU_SETSIZE
  std::vector<int> numbers;
  for (int number = 0; number < CPU_SETSIZE; ++number)
    if (CPU_ISSET(number, &all)) numbers.push_back(number);
  return numbers;
}

/// A step of a linear congruential generator, many times: nothing of it can be done at once or left
/// out.
std::uint64_t work(std::uint64_t value) {
  constexpr std::uint64_t factor = 6364136223846793005U, addend = 1442695040888963407U;  // Knuth
  constexpr int steps = 100'000;
  for (int step = 0; step < steps; ++step) value = value * factor + addend;
  return value;
}

ProcessorPace pace_of(int processor, Clock::time_point end) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET(processor, &mine);
  sched_setaffinity(0, sizeof(mine), &mine);
  std::vector<Duration> times;
  volatile std::uint64_t result = 1;  // it is needed, as far as the compiler knows
  do {
    const Clock::time_point begin = Clock::now();
    result = work(result);
    times.push_back(std::chrono::duration_cast<Duration>(Clock::now() - begin));
  } while (Clock::now() < end);
  const Spread spread = spread_of(std::move(times));
  return {processor, spread.low, spread.median, spread.high};
}

bool more_than(double factor, Duration high, Duration low) {
  return in_seconds(high) > factor * in_seconds(low);
}

}  // namespace

Duration Pace::low() const {
  return std::ranges::min(processors, {}, &ProcessorPace::low).low;
}

Duration Pace::high() const {
  return std::ranges::max(processors, {}, &ProcessorPace::high).high;
}

bool Pace::changes() const {
  return std::ranges::any_of(
      processors, [](const ProcessorPace& each) { return more_than(most, each.high, each.low); });
}

bool Pace::differs() const {
  return more_than(most, std::ranges::max(processors, {}, &ProcessorPace::median).median,
                   std::ranges::min(processors, {}, &ProcessorPace::median).median);
}

Pace measure_pace(std::chrono::milliseconds time, const std::function<void(double)>& watch) {
  const std::vector<int> processors = own_processors();
  const Clock::time_point begin = Clock::now(), end = begin + time;
  Pace pace{std::vector<ProcessorPace>(processors.size())};
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < processors.size(); ++i)
    threads.emplace_back([&, i] { pace.processors[i] = pace_of(processors[i], end); });
  constexpr std::chrono::milliseconds between{200};
  for (Clock::time_point now = begin; watch && now < end; now = Clock::now()) {
    watch(std::chrono::duration<double>(now - begin) / std::chrono::duration<double>(time));
    std::this_thread::sleep_until(std::min(end, now + between));
  }
  for (std::jthread& thread : threads) thread.join();
  return pace;
}

}  // namespace ddpsim
