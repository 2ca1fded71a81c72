#pragma once

#include <random>
#include <vector>

#include "tests/sim/predict/fixtures.hpp"

/// Schedules of every shape the engine takes, drawn from a seed with distributions of our own.
namespace ddpsim::fixtures {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  /// Each of low ... high.
  int between(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool one_in(int n) { return between(1, n) == 1; }

  /// Sometimes nothing, often a few whole microseconds (so that things coincide), else any time.
  Duration time(int most_us) {
    if (one_in(7)) return {};
    const Duration whole = std::chrono::microseconds{between(1, most_us)};
    return one_in(2) ? whole : whole - Duration{between(0, 999'999)};
  }
  /// 1, or up to about 3.
  float slowdown() { return one_in(4) ? 1.0F : 1.0F + static_cast<float>(between(1, 2000)) / 1000; }

 private:
  std::mt19937_64 random_;
};

struct Shape {
  int ranks = 1;
  int most_tasks = 30;       ///< besides collectives, per rank
  bool synchronous = false;  ///< kernels run on the host's thread
  bool interference = false;
  int communicators = 1;
  int collectives_at_once = 1;
  bool handover = false;  ///< some collectives are handed over, which takes time
};

inline PricedTask random_task(Dice& dice, const Shape& shape) {
  if (dice.one_in(5)) {
    const PricedTask hook = host(dice.time(5));
    return dice.one_in(4) ? blocking(hook) : hook;
  }
  PricedTask task = kernel(dice.time(20), static_cast<float>(dice.between(0, 4)) / 4);
  task.host = dice.time(6);
  if (shape.synchronous) {
    task.stream = StepStream::host;
  } else if (dice.one_in(3)) {
    task.launches = dice.between(2, 5);
    task.last_launch = task.work / task.launches;
  } else {
    task.last_launch = task.work;
  }
  if (dice.one_in(10)) task.host_waits = true;
  return task;
}

/// Schedules for ranks that issue equally many collectives at different times.
inline std::vector<Script> random_schedules(Dice& dice, const Shape& shape) {
  const int collectives = dice.between(0, 6);
  const bool several = shape.communicators > 1 || shape.collectives_at_once > 1;
  std::vector<Duration> latencies(static_cast<std::size_t>(several ? collectives : 0));
  for (Duration& each : latencies) each = dice.time(5);
  std::vector<Interference> beside(static_cast<std::size_t>(collectives));
  if (shape.interference)
    for (Interference& each : beside)
      each = {dice.slowdown(), dice.slowdown(), dice.slowdown(), 5e-6F * (dice.slowdown() - 1)};
  std::vector<Script> ranks;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    Script step;
    step.schedule.collectives_at_once = shape.collectives_at_once;
    const Duration take_up = shape.handover ? dice.time(15) : Duration::zero();
    const int others = dice.between(1, shape.most_tasks);
    int issued = 0;
    for (int left = others + collectives; left > 0; --left) {
      std::vector<std::uint32_t> after;
      const int count = static_cast<int>(step.schedule.tasks.size());
      for (int edges = count == 0 ? 0 : dice.between(0, 2); edges > 0; --edges)
        after.push_back(
            static_cast<std::uint32_t>(dice.between(std::max(0, count - 8), count - 1)));
      if (dice.between(1, left) <= collectives - issued) {
        PricedTask task = collective(dice.time(25), beside[static_cast<std::size_t>(issued)]);
        task.host = dice.time(3);
        if (dice.one_in(8)) task.host_waits = true;
        if (shape.handover && dice.one_in(2)) task.take_up = take_up;
        if (several) task.latency = latencies[static_cast<std::size_t>(issued)];
        task.communicator = static_cast<std::uint8_t>(issued % shape.communicators);
        step.add(task, after);
        ++issued;
      } else {
        step.add(random_task(dice, shape), after);
      }
    }
    ranks.push_back(std::move(step));
  }
  return ranks;
}

}  // namespace ddpsim::fixtures
